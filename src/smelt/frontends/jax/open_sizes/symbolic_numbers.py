"""Symbolic sizes in arithmetic with numbers become arrays that the model computes.

The arrays are weakly typed, as Python's numbers are: ``x / math.sqrt(x.shape[0])`` keeps the dtype
of x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp

from smelt.frontends.jax.compat import SymbolicDim, is_symbolic
from smelt.frontends.jax.patching.library_functions import ATTENTION_RANGE, INDICES
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function, Replacement

OF_MATH = ("sqrt", "log", "log2", "log10", "log1p", "exp", "sin", "cos", "tanh")
"""Functions of one number with the same name in ``math`` and jax.numpy."""

PENZAI_CHECK = "penzai.core.named_axes:NamedArray.check_valid"
"""Not listed in ``library_functions``, because the development extra lacks penzai."""


def _jax_function(original: Function) -> Function:
    """Return a replacement that calls the jax.numpy function of that name for a symbolic size."""
    function = getattr(jnp, original.__name__)

    def computed(*arguments: Any) -> Any:
        """Return jax.numpy's result for a symbolic size, else NotImplemented."""
        if len(arguments) != 1 or not is_symbolic(arguments[0]):
            return NotImplemented
        return function(1.0 * jnp.asarray(arguments[0]))

    return computed


def _unchanged(_: Function) -> Function:
    """Return a replacement that returns a symbolic size unchanged: it is an integer already."""

    def rounded(*arguments: Any) -> Any:
        """Return the symbolic size itself, else NotImplemented."""
        return arguments[0] if len(arguments) == 1 and is_symbolic(arguments[0]) else NotImplemented

    return rounded


def _range(original: Function) -> Function:
    """Return a replacement of ``range`` that returns an array for symbolic bounds."""

    def ranged(*bounds: Any) -> Any:
        """Return a JAX array for symbolic bounds, else a range."""
        return jnp.arange(*bounds) if any(map(is_symbolic, bounds)) else original(*bounds)

    return ranged


def _indices(original: Function) -> Function:
    """Return a replacement of ``_parse_indices``, for ``x[n // 2]`` and ``x.at[n - 1].set(y)``.

    A symbolic index becomes an array, which JAX wraps and clips as it does a number.
    """

    def parse_indices(indices: Any, shape: Any) -> Any:
        """Return JAX's parse of ``indices``, with arrays for symbolic sizes."""
        converted = [jnp.asarray(index) if is_symbolic(index) else index for index in indices]
        return original(tuple(converted), shape)

    return parse_indices


def _named_axes(_: Function) -> Function:
    """Return a replacement of penzai's check of named axes that accepts symbolic sizes."""

    def check_valid(named: Any) -> Any:
        """Return None, which means valid, if the symbolic sizes agree; else NotImplemented."""
        axes = named.named_axes
        sizes, shape = tuple(axes.values()), tuple(named.data_array.shape)
        if not any(map(is_symbolic, sizes)) or any(isinstance(name, int) for name in axes):
            return NotImplemented
        last_sizes = shape[len(shape) - len(sizes) :]
        return None if last_sizes == sizes else NotImplemented

    return check_valid


def _method(name: str) -> Callable[[Function], Function]:
    """Return a factory of the method ``name`` that symbolic sizes get during a trace.

    NumPy calls the method ``sqrt`` of an object for ``np.sqrt(x.shape[0])``.
    """

    def method(size: Any) -> Any:
        """Return jax.numpy's result for the size as a float."""
        return getattr(jnp, name)(1.0 * jnp.asarray(size))

    return lambda _: method


def _power(original: Function) -> Function:
    """Return ``**`` for sizes: ``x.shape[-1] ** -0.5`` becomes an array."""

    def power(size: Any, exponent: Any, *modulus: Any) -> Any:
        """Return an array for a float or a negative exponent, else JAX's symbolic power."""
        is_number = isinstance(exponent, int | float) and not modulus
        if is_number and (isinstance(exponent, float) or exponent < 0):
            return jnp.power(1.0 * jnp.asarray(size), float(exponent))
        return original(size, exponent, *modulus)

    return power


def _no_method(*_: Any) -> Any:
    """Raise AttributeError: the behaviour of a method that sizes have only during a trace."""
    raise AttributeError("sizes have no such method outside of a trace")


def _as_type(_: Function) -> Function:
    """Return the method ``astype`` of sizes, for code that calls it on ``np.max(x.shape)``.

    If all sizes are numbers, that maximum is a number of NumPy, which has the method.
    """
    return lambda size, dtype: jnp.asarray(size).astype(dtype)


def _copy_of_size(size: Any, _: Any = None) -> Any:
    """Return the size as its own deep copy.

    ``dataclasses.astuple`` copies, and JAX cannot compare sizes of two scopes.
    """
    return size


for _name in OF_MATH:
    register(Patch(f"math:{_name}", _jax_function, after=TypeError))
for _name in ("ceil", "floor", "trunc"):
    register(Patch(f"math:{_name}", _unchanged, after=TypeError))
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
    Replacement(SymbolicDim, "astype", _as_type, absent=_no_method),
    Replacement(SymbolicDim, "__pow__", _power),
    Replacement(SymbolicDim, "__deepcopy__", lambda _: _copy_of_size, absent=_copy_of_size),
    *(Replacement(SymbolicDim, name, _method(name), absent=_no_method) for name in OF_MATH),
)
