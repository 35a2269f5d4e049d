"""Lowerings by the name of their primitive: ours and those of installed packages.

``@lowers("sin")`` registers a function ``(cx, *operands, **params)``. The modules below ``plugins``
register ours. A package adds its own through the entry point group ``smelt.lowerings``; each entry
point names a module that registers lowerings when it is imported.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from smelt.extensions import extensions
from smelt.registry import Owner, Registry, modules_in, modules_of

ENTRY_POINTS = "smelt.lowerings"

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Rule:
    """How one primitive is lowered.

    ``parameters`` are the primitive's parameters that the function knows; None for any. If
    ``broadcasts``, the function gets operands whose broadcast to their JAX shape is delayed, and
    ONNX's operators broadcast them. Else operands have their JAX shapes.
    """

    function: Callable[..., Any]
    parameters: frozenset[str] | None
    broadcasts: bool


def _import_all() -> None:
    """Import all our plugins, and the modules of entry points."""
    for room in modules_in("smelt.frontends.jax.plugins"):
        modules_of(room.__name__)()
    extensions(ENTRY_POINTS)


RULES: Registry[str, Rule] = Registry(
    "E650", lambda primitive: f"lowerings of the primitive {primitive!r}", _import_all
)
"""The rules by primitive; the module that registered a rule may register it again."""


LATE: list[Callable[[str], Rule | None]] = []
"""Lookups for primitives of operators that may be declared after the plugins were imported."""


def lowers(
    *primitives: str, broadcasts: bool = False, params: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Register a function as the lowering of ``primitives``.

    Its keyword-only arguments name every parameter of the primitive, so a parameter that a new JAX
    release adds is refused and not ignored. A function with ``**params`` accepts any parameter, or,
    if ``params`` is set, only those names in addition.

    Raises UsageError E650 if a primitive already has a lowering.
    """

    def decorate(function: Function) -> Function:
        """Register ``function`` for each primitive and return it."""
        parameters = _parameters(function, params)
        for primitive in primitives:
            register(primitive, Rule(function, parameters, broadcasts))
        return function

    return decorate


def _parameters(function: Callable[..., Any], extras: tuple[str, ...]) -> frozenset[str] | None:
    """Return the names of the primitive's parameters that ``function`` accepts; None for any."""
    arguments = inspect.signature(function).parameters.values()
    if not extras and any(a.kind is inspect.Parameter.VAR_KEYWORD for a in arguments):
        return None
    named = [a.name for a in arguments if a.kind is inspect.Parameter.KEYWORD_ONLY]
    return frozenset((*named, *extras))


def register(primitive: str, rule: Rule) -> None:
    """Add one rule; raises UsageError E650 if another module registered one for the primitive."""
    RULES.add(primitive, rule, Owner(rule.function.__module__))


def find(primitive: str) -> Rule | None:
    """Return the lowering of ``primitive``, or None."""
    found = (RULES.get(primitive), *(lookup(primitive) for lookup in LATE))
    return next((rule for rule in found if rule), None)
