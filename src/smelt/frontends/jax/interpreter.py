"""Step through a jaxpr: the one loop that lowering and the conversions of jaxprs share.

The caller chooses what represents a value, and a function that computes an equation on values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

from smelt.frontends.jax import compat

Value = TypeVar("Value")

CALLS: Mapping[str, str] = {
    **dict.fromkeys(("jit", "pjit", "checkpoint", "remat2", "composite", "shard_map"), "jaxpr"),
    **dict.fromkeys(("custom_jvp_call", "custom_vjp_call"), "call_jaxpr"),
    **dict.fromkeys(("closed_call", "core_call"), "call_jaxpr"),
    "custom_vmap_call": "call",
}
"""Primitives that call a jaxpr with their operands, and the parameter that holds the jaxpr.

The other parameters are rules for derivatives and batches, which inference does not need.
"""


def interpret(
    jaxpr: compat.Jaxpr,
    constants: Sequence[Value],
    operands: Sequence[Value],
    literal: Callable[[compat.Literal], Value],
    step: Callable[[compat.Equation, list[Value]], Sequence[Value]],
) -> list[Value]:
    """Return the results of ``jaxpr``, computed by ``step`` from ``constants`` and ``operands``.

    ``step(equation, values)`` returns the results of one live equation. ``literal`` returns the
    value of a literal.
    """
    values: dict[compat.Var, Value] = dict(zip(jaxpr.constvars, constants, strict=True))
    values.update(zip(jaxpr.invars, operands, strict=True))

    def read(atom: compat.Atom) -> Value:
        """Return the value of a variable or literal."""
        return literal(atom) if isinstance(atom, compat.Literal) else values[atom]

    for equation in live_equations(jaxpr):
        results = step(equation, [read(atom) for atom in equation.invars])
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def live_equations(jaxpr: compat.Jaxpr) -> list[compat.Equation]:
    """Return, in order, the equations that the results depend on or that have effects.

    Prints and other debugging do not count as effects that a model has to keep.
    """
    read_atoms = {atom for atom in jaxpr.outvars if not isinstance(atom, compat.Literal)}
    live = []
    for equation in reversed(jaxpr.eqns):
        is_read = any(variable in read_atoms for variable in equation.outvars)
        if is_read or compat.has_effects(equation):
            live.append(equation)
            read_atoms.update(a for a in equation.invars if not isinstance(a, compat.Literal))
    return live[::-1]


def bodies(equation: compat.Equation) -> Iterator[compat.Jaxpr]:
    """Yield the jaxprs that ``equation`` calls or loops over, without their constants."""
    for body in compat.inner_jaxprs(equation):
        yield jaxpr_and_constants(body)[0]


def called_jaxpr(equation: compat.Equation) -> compat.ClosedJaxpr | compat.Jaxpr | None:
    """Return the jaxpr that ``equation`` calls, None if it is not a call."""
    parameter = CALLS.get(equation.primitive.name)
    body: compat.ClosedJaxpr | compat.Jaxpr | None = (
        None if parameter is None else equation.params[parameter]
    )
    return body


def jaxpr_and_constants(
    body: compat.ClosedJaxpr | compat.Jaxpr,
) -> tuple[compat.Jaxpr, Sequence[object]]:
    """Return a jaxpr and its constants; an open jaxpr has none."""
    return (body.jaxpr, body.consts) if isinstance(body, compat.ClosedJaxpr) else (body, ())
