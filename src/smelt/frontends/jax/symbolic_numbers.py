"""Symbolic sizes where code computes with a number: as the arrays that the model computes of them.

They are weak in type, as Python's numbers are: ``x / math.sqrt(x.shape[0])`` keeps the type of x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from smelt.frontends.jax.compat import SymbolicDim, is_symbolic
from smelt.frontends.jax.library_functions import ATTENTION_RANGE, INDICES
from smelt.frontends.jax.patches import Patch, register
from smelt.frontends.jax.replacement import Function, Replacement

OF_MATH = ("sqrt", "log", "log2", "log10", "log1p", "exp", "sin", "cos", "tanh")
"""Functions of ``math`` of one number, which jax.numpy calls the same."""

PENZAI_CHECK = "penzai.core.named_axes:NamedArray.check_valid"
"""No function of ``library_functions``, all of which the development extra has."""


def _of_jax(original: Function) -> Function:
    """Of a symbolic size, the function of jax.numpy of that name."""
    function = getattr(jnp, original.__name__)

    def computed(*given: Any) -> Any:
        if len(given) != 1 or not is_symbolic(given[0]):
            return NotImplemented
        return function(1.0 * jnp.asarray(given[0]))

    return computed


def _whole(_: Function) -> Function:
    """A size is a whole number already."""

    def rounded(*given: Any) -> Any:
        return given[0] if len(given) == 1 and is_symbolic(given[0]) else NotImplemented

    return rounded


def _range(original: Function) -> Function:
    """As an array, for code that makes one of it."""

    def ranged(*bounds: Any) -> Any:
        return jnp.arange(*bounds) if any(map(is_symbolic, bounds)) else original(*bounds)

    return ranged


def _indices(original: Function) -> Function:
    """Of ``x[n // 2]`` and ``x.at[n - 1].set(y)``, the place as an array, which JAX brings inside
    the array as it does with a number."""

    def parse_indices(indices: Any, shape: Any) -> Any:
        places = [jnp.asarray(place) if is_symbolic(place) else place for place in indices]
        return original(tuple(places), shape)

    return parse_indices


def _named_axes(_: Function) -> Function:
    """Penzai's check of an array with named axes holds for sizes that are no ints, too."""

    def check_valid(named: Any) -> Any:
        axes = named.named_axes
        sizes, shape = tuple(axes.values()), tuple(named.data_array.shape)
        is_open = any(map(is_symbolic, sizes)) and not any(isinstance(name, int) for name in axes)
        return None if is_open and shape[len(shape) - len(sizes) :] == sizes else NotImplemented

    return check_valid


def _method(name: str) -> Callable[[Function], Function]:
    """What NumPy calls of an object that its function ``name`` gets: ``np.sqrt(x.shape[0])``."""

    def method(size: Any) -> Any:
        return getattr(jnp, name)(1.0 * jnp.asarray(size))

    return lambda _: method


def _power(original: Function) -> Function:
    """A power that is no size, such as ``x.shape[-1] ** -0.5``, as an array."""

    def power(size: Any, exponent: Any, *modulus: Any) -> Any:
        is_number = isinstance(exponent, int | float) and not modulus
        if is_number and (isinstance(exponent, float) or exponent < 0):
            return jnp.power(1.0 * jnp.asarray(size), float(exponent))
        return original(size, exponent, *modulus)

    return power


def _lacking(*_: Any) -> Any:
    raise AttributeError("sizes have no such method outside of a trace")


def _as_type(_: Function) -> Function:
    """What numbers of NumPy do, such as ``np.max(x.shape)`` is where all sizes are numbers."""
    return lambda size, dtype: jnp.asarray(size).astype(dtype)


def _itself(size: Any, _: Any = None) -> Any:
    """A copy of a size is the size: ``dataclasses.astuple`` copies, and JAX compares no sizes of
    two scopes."""
    return size


for _name in OF_MATH:
    register(Patch(f"math:{_name}", _of_jax, after=TypeError))
for _name in ("ceil", "floor", "trunc"):
    register(Patch(f"math:{_name}", _whole, after=TypeError))
register(Patch(ATTENTION_RANGE.target, _range))
register(Patch(INDICES.target, _indices, parameters=INDICES.parameters))
register(
    Patch(
        PENZAI_CHECK,
        _named_axes,
        optional=True,
        parameters=("self",),
        after=ValueError,
    )
)

REPLACEMENTS = (
    Replacement(SymbolicDim, "astype", _as_type, absent=_lacking),
    Replacement(SymbolicDim, "__pow__", _power),
    Replacement(SymbolicDim, "__deepcopy__", lambda _: _itself, absent=_itself),
    *(Replacement(SymbolicDim, name, _method(name), absent=_lacking) for name in OF_MATH),
)
