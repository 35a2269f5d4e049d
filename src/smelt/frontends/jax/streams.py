"""Streams of random numbers that nnx modules carry and count along.

A module counts what it draws, even a recurrent one that asks for a key and starts from zeros. A
trace must not write to the module of its caller, so it works on one of its own. A model gives the
same for the same inputs, so it cannot count: what it returns must not depend on a draw.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Set
from typing import Any

from smelt.errors import Unsupported
from smelt.frontends.jax import compat, engine
from smelt.frontends.jax.places import place
from smelt.frontends.jax.state import State


def own(fn: Callable[..., Any], state: State) -> Callable[..., Any]:
    """``fn``, or the same with modules of the current trace where they count; call it inside."""
    return state.rebuild({}) if state.keys else fn


def check(closed: compat.ClosedJaxpr, state: State) -> None:
    """Raise Unsupported E102 if a result depends on a key of a stream."""
    keys = {compat.identity(key) for key in state.keys}
    pairs = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    drawn = {variable for variable, constant in pairs if compat.identity(constant) in keys}
    for equation in engine.live_equations(closed.jaxpr) if keys else ():
        if any(_is_drawn(atom, drawn, keys) for atom in equation.invars):
            raise Unsupported(
                "E102",
                "a module draws random numbers from a stream that it counts along",
                at=place(equation),
                why="each call of the module would give something else, each run of a model not",
                fix="call eval() on the module, or pass a key as an argument",
            )


def _is_drawn(atom: compat.Atom, drawn: Set[Any], keys: Set[Hashable]) -> bool:
    if isinstance(atom, compat.Literal):
        return compat.identity(atom.val) in keys
    return atom in drawn
