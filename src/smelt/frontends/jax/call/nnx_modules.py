"""nnx modules in a trace: traces use copies of them, and refuse modules that keep state.

A trace must not write to the caller's module, so it works on a copy. A model returns the same
results for the same inputs. So a module may count its random numbers (recurrent ones do, even if
they start from zeros), but no result may depend on a draw. It may normalize its weights in place,
but not keep statistics from call to call.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sequence, Set
from typing import Any

import jax

from smelt.errors import Unsupported, UsageError
from smelt.frontends.jax import compat
from smelt.frontends.jax.call.state import Copy, State, content_of, variables_of
from smelt.frontends.jax.interpreter import live_equations
from smelt.frontends.jax.source_lines import place


def check_traceable(fn: Any) -> None:
    """Raise UsageError E109 if ``fn`` cannot be called, or cannot be called with tracers."""
    if isinstance(fn, jax.stages.Compiled | jax.stages.Lowered):
        what = "compiled" if isinstance(fn, jax.stages.Compiled) else "lowered"
        raise UsageError(
            "E109",
            f"a {what} function cannot be traced",
            why="it holds code for a device and no longer the operations of JAX",
            fix="give the function that was jitted, or the bytes of jax.export.export(f)(...)"
            ".serialize()",
        )
    if not callable(fn):
        is_jaxpr = isinstance(fn, compat.ClosedJaxpr)
        raise UsageError(
            "E109",
            f"a {type(fn).__name__} cannot be called",
            fix="give jax.extend.core.jaxpr_as_fun(closed_jaxpr)"
            if is_jaxpr
            else "give a callable",
            why="trace calls its first argument with abstract arrays",
        )


def call_advice(fn: Any) -> str:
    """Return how to trace a linen module without variables; empty for other functions."""
    linen = sys.modules.get("flax.linen")
    module = getattr(fn, "__self__", fn)
    if linen is None or not isinstance(module, linen.Module) or module.scope is not None:
        return ""
    return (
        "a linen module has no weights of its own: trace functools.partial(module.apply, variables)"
    )


def check_unchanged(copies: Sequence[Copy]) -> None:
    """Raise Unsupported E102 if a module wrote a variable that its next call would read.

    Two kinds of variables may change: weights that the module normalizes again in each call, and
    values that it records for its caller. Call this inside of the trace, after the function.
    """
    for module, before in copies:
        for path, variable in variables_of(module):
            if content_of(variable) is not before.get(path) and not _may_change(variable):
                raise Unsupported(
                    "E102",
                    f"a module writes to its variable {'.'.join(map(str, path))!r}",
                    why="a model keeps nothing from one run to the next",
                    fix="call eval() on the module, or return the new value",
                )


def _may_change(variable: Any) -> bool:
    """True for parameters, counts of random streams, and recorded intermediate values."""
    nnx = sys.modules["flax.nnx"]
    return isinstance(variable, nnx.Param | nnx.RngState | nnx.Intermediate)


def check_not_random(closed: compat.ClosedJaxpr, state: State) -> None:
    """Raise Unsupported E102 if a result depends on the key of a random stream."""
    keys = {compat.identity(key) for key in state.keys}
    if not keys:
        return
    pairs = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    random = {variable for variable, constant in pairs if compat.identity(constant) in keys}
    for equation in live_equations(closed.jaxpr):
        if any(_is_random(atom, random, keys) for atom in equation.invars):
            raise Unsupported(
                "E102",
                "a module draws random numbers from a stream of its own",
                at=place(equation),
                why="each call of the module returns other numbers, but each run of a model the"
                " same",
                fix="call eval() on the module, or pass a key as an argument",
            )


def _is_random(atom: compat.Atom, random: Set[Any], keys: Set[Hashable]) -> bool:
    """True if ``atom`` is the key of a random stream, as a variable or a literal."""
    if isinstance(atom, compat.Literal):
        return compat.identity(atom.val) in keys
    return atom in random
