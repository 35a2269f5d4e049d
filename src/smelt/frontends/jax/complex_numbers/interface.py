"""Complex inputs and outputs become real arrays with a last dim of 2: real and imaginary part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
from jax import lax

from smelt.frontends.jax import compat, frames
from smelt.frontends.jax.complex_numbers.parts import is_complex, real_dtype
from smelt.frontends.jax.interpreter import interpret


def with_pairs(closed: compat.ClosedJaxpr) -> compat.ClosedJaxpr:
    """Return ``closed`` with pairs of real numbers in place of complex inputs and outputs.

    Inside, the jaxpr remains complex; ``without_complex`` converts it later.
    """
    jaxpr, count = closed.jaxpr, len(closed.jaxpr.constvars)
    if not any(map(_is_complex, (*jaxpr.invars, *jaxpr.outvars))):
        return closed

    def run(*arrays: Any) -> list[Any]:
        """Run the jaxpr on constants and inputs; complex ones are passed and returned as pairs."""
        inputs = [
            _complex_from_pairs(array) if _is_complex(variable) else array
            for array, variable in zip(arrays[count:], jaxpr.invars, strict=True)
        ]
        results = interpret(jaxpr, arrays[:count], inputs, _literal, _step)
        return [
            _pairs_from_complex(array) if _is_complex(atom) else array
            for array, atom in zip(results, jaxpr.outvars, strict=True)
        ]

    structs = (
        *(compat.struct_of(variable.aval) for variable in jaxpr.constvars),
        *(_struct(variable.aval) for variable in jaxpr.invars),
    )
    traced, _ = compat.make_jaxpr(run, structs)
    return compat.with_constants(traced, closed.consts, jaxpr)


def _is_complex(atom: compat.Atom) -> bool:
    """True for an array of complex numbers."""
    return is_complex(getattr(atom.aval, "dtype", None))


def _struct(aval: compat.Aval) -> Any:
    """Return the type of an input: a complex one gets a last dim of 2."""
    if not is_complex(aval.dtype):
        return compat.struct_of(aval)
    return compat.struct((*aval.shape, 2), real_dtype(aval.dtype))


def _complex_from_pairs(pairs: Any) -> Any:
    """Return complex numbers from pairs."""
    re, im = (lax.index_in_dim(pairs, part, axis=-1, keepdims=False) for part in (0, 1))
    return lax.complex(re, im)


def _pairs_from_complex(array: Any) -> Any:
    """Return pairs from complex numbers."""
    return jnp.stack([lax.real(array), lax.imag(array)], axis=-1)


def _literal(literal: compat.Literal) -> Any:
    """Return the array of a literal."""
    aval: compat.Aval = literal.aval
    return jnp.asarray(literal.val, aval.dtype)


def _step(equation: compat.Equation, values: list[Any]) -> Sequence[Any]:
    """Return the results of the equation's primitive, bound unchanged.

    ``with_pairs`` changes only the inputs and outputs of the jaxpr.
    """
    with frames.traced_as(equation):
        return compat.rebind(equation, values, equation.params)
