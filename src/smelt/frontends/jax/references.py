"""Mutable references, as ``jax.new_ref`` creates them, and Pallas kernels, which write to them.

Both become equations on arrays, by the rules that JAX itself uses to run them on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax._src.core import Ref, internal_mutable_array_effect
from jax._src.state.discharge import discharge_state
from jax._src.state.types import RefEffect
from jax.extend.core import jaxpr_as_fun

from smelt.errors import Unsupported
from smelt.frontends.jax import compat
from smelt.frontends.jax.source_lines import place

KERNEL = "pallas_call"
"""The primitive that runs a kernel of Pallas."""

ON_REFERENCES = ("addupdate", "empty_ref", "free_ref", "freeze", "get", "new_ref", "swap")
"""The primitives that create, read, write or end references."""

_KINDS = (RefEffect, type(internal_mutable_array_effect))


def without_references(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """Return ``closed`` with a new array for each write to a reference.

    Raises Unsupported E102 for a reference that is created outside of ``closed``, and for a
    primitive that JAX itself cannot convert so.
    """
    if not _is_stateful(closed):
        return closed
    _check_own(closed)
    try:
        stateless = discharge_state(closed)
    except NotImplementedError as error:
        raise Unsupported(
            "E102",
            "JAX has no rule for this use of a mutable reference",
            at=list(dict.fromkeys(place(e) for e in closed.jaxpr.eqns if _is_stateful(e))),
            why=str(error),
            fix="carry the array through the loop or the call instead, and return it",
        ) from error
    with_names = stateless.jaxpr.replace(debug_info=closed.jaxpr.debug_info)
    return compat.ClosedJaxpr(with_names, stateless.consts)


def _is_stateful(item: compat.Equation | compat.ClosedJaxpr) -> bool:
    """True if an equation or a jaxpr reads, writes or creates references."""
    return any(isinstance(effect, _KINDS) for effect in item.effects)


def _check_own(closed: compat.ClosedJaxpr) -> None:
    """Raise Unsupported E102 if ``closed`` uses a reference that was created outside of it."""
    pairs = zip(closed.jaxpr.constvars, closed.consts, strict=True)
    captured = [variable for variable, constant in pairs if is_reference(constant)]
    if not captured:
        return
    users = (e for e in closed.jaxpr.eqns if any(atom in captured for atom in e.invars))
    raise Unsupported(
        "E102",
        "the function uses a mutable reference that was created outside of it",
        at=list(dict.fromkeys(map(place, users))),
        why="a model keeps nothing from one run to the next",
        fix="take the array as an argument, create the reference inside by jax.new_ref, and"
        " return ref[...] at the end",
    )


def is_reference(value: object) -> bool:
    """True for a mutable reference, traced or not."""
    return isinstance(value, Ref)


def is_of_kernel(equation: compat.Equation) -> bool:
    """True for a Pallas kernel in interpret mode, and for primitives that occur only in kernels."""
    name = equation.primitive.name
    return name in _INSIDE or (name == KERNEL and equation.params["interpret"] is True)


def arrays_of_kernel(equation: compat.Equation) -> Callable[..., Any]:
    """Return the function on arrays by which JAX computes ``equation`` on a CPU.

    A kernel is a loop over its grid. Elements that it never writes are NaN, as in JAX.
    """
    if equation.primitive.name in _INSIDE:
        return partial(_INSIDE[equation.primitive.name], **equation.params)
    from jax._src.pallas.hlo_interpreter import pallas_call_hlo_interpret

    params = {name: value for name, value in equation.params.items() if name != "interpret"}
    return partial(pallas_call_hlo_interpret, **params | {"debug": False})


def refused_kernel(equation: compat.Equation, error: Exception) -> Unsupported:
    """Return E102 for a kernel whose interpretation by JAX raises ``error``."""
    return Unsupported(
        "E102",
        "JAX cannot interpret this kernel of Pallas",
        at=place(equation),
        why=str(error).strip().partition("\n")[0] or type(error).__name__,
        fix="make it run with interpret=True outside of smelt first",
    )


def _scoped(*outer: Any, jaxpr: compat.Jaxpr, collective_axes: Any, **_: Any) -> list[Any]:
    """Return the results of ``pl.run_scoped``; its ``jaxpr`` takes references to scratch memory."""
    from jax._src.pallas.primitives import uninitialized_value

    if collective_axes:
        raise NotImplementedError("memory that programs of a kernel share")
    avals: list[compat.Aval] = [variable.aval for variable in jaxpr.invars]
    scratch = [uninitialized_value(aval.shape, aval.dtype) for aval in avals]
    with_inputs = jaxpr.replace(constvars=[], invars=[*jaxpr.constvars, *jaxpr.invars])
    free = discharge_state(compat.ClosedJaxpr(with_inputs, ()))
    results: list[Any] = jaxpr_as_fun(free)(*outer, *scratch)
    return results[: len(jaxpr.outvars)]


def _reciprocal(x: Any, *, approx: bool, **_: Any) -> list[Any]:
    """Return ``1 / x``; with ``approx``, rounded to bfloat16 as in JAX's interpreter."""
    return [jnp.reciprocal(x.astype(jnp.bfloat16)).astype(x.dtype) if approx else 1 / x]


_INSIDE: dict[str, Callable[..., Any]] = {  # Primitives that occur only in kernels.
    "reciprocal": _reciprocal,
    "run_scoped": _scoped,
    "multiple_of": lambda x, **_: [x],
}
