"""Lowerings by the name of their primitive: ours, and those of installed packages.

``@lowers("sin")`` registers a function ``(cx, *operands, **params)``; the modules below ``plugins``
register ours. A package adds its own through the entry point group
``smelt.lowerings``: each entry point names a module that registers lowerings when imported.
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

    ``parameters`` are the primitive's parameters that the function knows, all if None.
    ``broadcasts``: the function takes operands that still have to be broadcast, by the rules of
    NumPy, to the shape that JAX gives them; others get them in full.
    """

    function: Callable[..., Any]
    parameters: frozenset[str] | None
    broadcasts: bool


def _import_all() -> None:
    for room in modules_in("smelt.frontends.jax.plugins"):
        modules_of(room.__name__)()
    extensions(ENTRY_POINTS)


RULES: Registry[str, Rule] = Registry(
    "E650", lambda primitive: f"lowerings of the primitive {primitive!r}", _import_all
)
"""Each is owned by a whole module, so that a cell of a notebook may define its own anew."""


def lowers(
    *primitives: str, broadcasts: bool = False, params: tuple[str, ...] = ()
) -> Callable[[Function], Function]:
    """Register a function as the lowering of ``primitives``.

    Its keyword-only arguments name every parameter of the primitive, so a parameter that a new
    JAX adds is refused and not ignored; ``params`` names more, for a function with ``**params``.
    A function with ``**params`` and no ``params`` takes any.

    Raises UsageError E650 if a primitive has a lowering already.
    """

    def decorate(function: Function) -> Function:
        parameters = _parameters(function, params)
        for primitive in primitives:
            register(primitive, Rule(function, parameters, broadcasts))
        return function

    return decorate


def _parameters(function: Callable[..., Any], more: tuple[str, ...]) -> frozenset[str] | None:
    arguments = inspect.signature(function).parameters.values()
    if not more and any(a.kind is inspect.Parameter.VAR_KEYWORD for a in arguments):
        return None
    named = [a.name for a in arguments if a.kind is inspect.Parameter.KEYWORD_ONLY]
    return frozenset((*named, *more))


def register(primitive: str, rule: Rule) -> None:
    """Add one rule; raises UsageError E650 if another module has registered one."""
    RULES.add(primitive, rule, Owner(rule.function.__module__))


def find(primitive: str) -> Rule | None:
    """The lowering of ``primitive``, or None."""
    return RULES.get(primitive) or _declared(primitive)


def _declared(primitive: str) -> Rule | None:
    """The lowering to an elementwise operator that says it is this primitive."""
    from smelt.frontends.jax.plugins.elementwise import operators

    return operators.declared(primitive)
