"""Lowerings by the name of their primitive: ours, and those of installed packages.

``@lowers("sin")`` registers a function ``(cx, *operands, **params)``; the modules in
``plugins.MODULES`` register ours. A package adds its own through the entry point group
``smelt.lowerings``: each entry point names a module that registers lowerings when imported.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeVar

from smelt.errors import UsageError
from smelt.extensions import extensions

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

    @property
    def owner(self) -> str:
        """The module that registered it, for messages."""
        return self.function.__module__


_rules: dict[str, Rule] = {}
_lock = threading.RLock()
_loaded = False


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
    """Add one rule; raises UsageError E650 if another module has registered one.

    The same module replaces its own, as when a cell of a notebook runs again.
    """
    with _lock:
        known = _rules.get(primitive)
        if known is None or known.owner == rule.owner:
            _rules[primitive] = rule
            return
    if known is not rule:
        raise UsageError(
            "E650",
            f"primitive {primitive!r} has two lowerings",
            at=(known.owner, rule.owner),
            why="which one to use would depend on the order of imports",
            fix="remove one of them, or uninstall its package",
        )


def find(primitive: str) -> Rule | None:
    """The lowering of ``primitive``, or None."""
    load()
    return _rules.get(primitive) or _declared(primitive)


def _declared(primitive: str) -> Rule | None:
    """The lowering to an elementwise operator that says it is this primitive."""
    from smelt.frontends.jax.plugins.elementwise import operators

    return operators.declared(primitive)


def names() -> tuple[str, ...]:
    """Every primitive with a lowering, sorted."""
    load()
    return tuple(sorted(_rules))


def load() -> None:
    """Import our plugins, then those of installed packages, once in a process."""
    global _loaded  # noqa: PLW0603 - the registry is filled once in a process
    if _loaded:
        return
    with _lock:
        if _loaded:
            return
        from smelt.frontends.jax.plugins import ROOMS

        for room, modules in ROOMS.items():
            for module in modules:
                import_module(f"smelt.frontends.jax.plugins.{room}.{module}")
        extensions(ENTRY_POINTS)
        _loaded = True
