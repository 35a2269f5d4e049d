"""JAX functions that require a number as size, although their computation holds for any size.

The replacements return the same results for symbolic sizes. If all sizes are numbers, JAX's own
code is traced.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from smelt.frontends.jax import compat
from smelt.frontends.jax.compat import is_symbolic
from smelt.frontends.jax.patching.library_functions import (
    CONCRETE,
    CONVOLVE,
    DIAG_INDICES,
    DIAG_INDICES_INSIDE,
    FFT_SIZES,
    RFFTFREQ,
    SEARCH_SORTED,
    SQUEEZE,
    TOEPLITZ,
)
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function

RCOND = "rcond must be float"
"""The ``context`` that JAX's polyfit passes to ``concrete_or_error`` for its ``rcond``."""


def _search_sorted(original: Function) -> Function:
    """Return a replacement of ``searchsorted`` for a vector of symbolic size."""

    def search_sorted(a: Any, query: Any, /, **keywords: Any) -> Any:
        """Return the insertion points, by bisection if the size is symbolic."""
        if jnp.ndim(a) != 1 or not is_symbolic(a.shape[0]):
            return original(a, query, **keywords)
        return _bisected(a, query, keywords.get("side", "left"))

    return search_sorted


def _bisected(a: Any, query: Any, side: str) -> Any:
    """Return the insertion points (int32) of ``query`` in the sorted vector ``a``, by bisection.

    The loop has as many steps as the size has bits, as in JAX.
    """
    dtype = np.dtype(np.int32)
    goes_left = compat.sorts_before_or_with if side == "left" else compat.sorts_before
    size = jnp.asarray(a.shape[0], dtype)
    levels = jnp.sum((size >> jnp.arange(31, dtype=dtype)) > 0)

    def halve(_: Any, bounds: Any) -> Any:
        """Return the half of each interval ``[low, high]`` that holds the insertion point."""
        low, high = bounds
        middle = low + (high - low) // 2
        in_left_half = goes_left(query, a[middle])
        return jnp.where(in_left_half, low, middle), jnp.where(in_left_half, middle, high)

    low = jnp.zeros(jnp.shape(query), dtype)
    return lax.fori_loop(0, levels, halve, (low, jnp.broadcast_to(size, low.shape)))[1]


def _diag_indices(original: Function) -> Function:
    """Return a replacement of ``diag_indices`` for a symbolic size."""

    def diag_indices(n: Any, ndim: int = 2) -> Any:
        """Return ``ndim`` equal index vectors."""
        return (jnp.arange(n),) * ndim if is_symbolic(n) else original(n, ndim)

    return diag_indices


def _len(original: Function) -> Function:
    """Return a replacement of ``len`` that returns the symbolic first size of an array.

    Python's ``len`` returns only numbers and raises a TypeError.
    """

    def length(*arguments: Any) -> Any:
        """Return the symbolic first size of the argument, else NotImplemented."""
        shape = getattr(arguments[0], "shape", ()) if len(arguments) == 1 else ()
        return shape[0] if shape and is_symbolic(shape[0]) else NotImplemented

    return length


def _concrete(original: Function) -> Function:
    """Return a replacement of ``concrete_or_error`` that accepts a symbolic size as an int.

    It also accepts an array as the ``rcond`` of polyfit, which JAX only compares with.
    """

    def concrete_or_error(force: Any, val: Any, context: str = "") -> Any:
        """Return ``val`` if it is a symbolic size or polyfit's ``rcond``, else JAX's result."""
        is_size = force in (int, operator.index) and is_symbolic(val)
        is_bound = force is float and context == RCOND and isinstance(val, jax.Array)
        return val if is_size or is_bound else original(force, val, context)

    return concrete_or_error


def map_by(reader: Function) -> Callable[[Function], Function]:
    """Return a function from a JAX module's ``map`` to its replacement.

    JAX reads sizes by ``map(reader, sizes)``, and ``reader`` fails for a symbolic one. The
    replacement leaves symbolic sizes unchanged there.
    """

    def replacement(original: Function) -> Function:
        """Return the new ``map``, which calls the ``original`` for other functions."""

        def mapped(function: Function, /, *iterables: Iterable[Any]) -> Any:
            """Return the values mapped by ``function``; ``reader`` skips symbolic sizes."""
            if function is not reader:
                return original(function, *iterables)
            return [size if is_symbolic(size) else function(size) for size in iterables[0]]

        return mapped

    return replacement


def _rfftfreq(original: Function) -> Function:
    """Return a replacement of ``rfftfreq`` for a symbolic size, which JAX would treat as odd."""

    def rfftfreq(n: Any, d: Any = 1.0, *, dtype: Any = None, device: Any = None) -> Any:
        """Return ``0 .. n // 2`` divided by ``d * n``."""
        if not is_symbolic(n):
            return original(n, d, dtype=dtype, device=device)
        dtype = dtype or jnp.result_type(float)
        return jnp.arange(n // 2 + 1, dtype=dtype) / jnp.array(d * n, dtype=dtype)

    return rfftfreq


def _squeeze(original: Function) -> Function:
    """Return a replacement of ``squeeze`` without axes: it drops the dims known to be 1."""

    def squeeze(a: Any, axis: Any) -> Any:
        """Return ``a`` without ``axis``, or without all dims known to be 1."""
        if axis is None and any(map(is_symbolic, a.shape)):
            axis = tuple(i for i, size in enumerate(a.shape) if is_one(size))
        return original(a, axis)

    def is_one(size: Any) -> bool:
        """True if ``size`` is known to be 1; a symbol is at least 1 for JAX, a number may be 0."""
        return bool(size <= 1) if is_symbolic(size) else size == 1

    return squeeze


def _convolve(original: Function) -> Function:
    """Return a replacement of ``_conv`` (convolve and correlate) for symbolic sizes."""

    def convolve(
        x: Any,
        y: Any,
        mode: str,
        op: str,
        precision: Any,
        preferred_element_type: Any = None,
    ) -> Any:
        """Return the convolution or correlation of vectors ``x`` and ``y``.

        The shorter vector slides over the longer one.
        """
        sizes = (*jnp.shape(x), *jnp.shape(y))
        if len(sizes) != 2 or not any(map(is_symbolic, sizes)):
            return original(x, y, mode, op, precision, preferred_element_type)
        dtype = jnp.result_type(x, y, preferred_element_type or np.float32)
        x, y = x.astype(dtype), y.astype(dtype)
        if op == "correlate":
            y = jnp.conj(y)
        swapped = _is_longer(sizes[1], sizes[0], mode, op)
        if swapped:
            x, y = y, x
        result = _sliding_products(x, y[::-1] if op == "convolve" else y, mode, precision)
        return result[::-1] if swapped and op == "correlate" else result

    return convolve


def _is_longer(second: Any, first: Any, mode: str, op: str) -> bool:
    """True if the array of size ``second`` is longer, so that the first array slides over it.

    In a full convolution either may slide, and an array of known size slides faster. Raises
    InconclusiveDim if the result depends on which array is longer, and that is unknown.
    """
    if mode == "full" and is_symbolic(second) != is_symbolic(first):
        return is_symbolic(second)
    try:
        return not bool(first >= second)
    except compat.InconclusiveDim:
        if mode == "full":
            return False
        # Exchanging arrays of equal size changes only the result of a centred correlation.
        if (op, mode) != ("correlate", "same"):
            with suppress(compat.InconclusiveDim):
                return bool(second >= first)
        raise


def _sliding_products(x: Any, kernel: Any, mode: str, precision: Any) -> Any:
    """Return the products of ``kernel`` with each window of ``x``, padded for ``mode``.

    A convolution computes them; a kernel of symbolic size needs ``_window_products``.
    """
    width = kernel.shape[0]
    pads = {"valid": (0, 0), "same": (width // 2, width - width // 2 - 1), "full": (width - 1,) * 2}
    if mode not in pads:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    if is_symbolic(width):
        return _window_products(x, kernel, pads[mode], precision)
    return lax.conv_general_dilated(
        x[None, None], kernel[None, None], (1,), [pads[mode]], precision=precision
    )[0, 0]


def _window_products(x: Any, kernel: Any, pads: tuple[Any, Any], precision: Any) -> Any:
    """Return the products of ``kernel`` with all windows of ``x``, as one matrix product.

    ``lax.conv_general_dilated`` needs a kernel of known size.
    """
    size, width = x.shape[0], kernel.shape[0]
    begins = jnp.arange(size + sum(pads) - width + 1) - pads[0]
    positions = begins[:, None] + jnp.arange(width)
    windows = jnp.take(x, jnp.clip(positions, 0, size - 1), mode="clip")
    windows = jnp.where((positions >= 0) & (positions < size), windows, 0)
    return jnp.matmul(windows, kernel, precision=precision)


def _toeplitz(original: Function) -> Function:
    """Return a replacement of ``_toeplitz`` that gathers elements by index.

    JAX convolves with an identity matrix, whose size must be known.
    """

    def toeplitz(c: Any, r: Any, /) -> Any:
        """Return the Toeplitz matrix of column ``c`` and row ``r``.

        Element (i, j) depends only on j - i. ``elements`` holds it at ``rows - 1 - i + j``.
        """
        rows, columns = c.shape[-1], r.shape[-1]
        if not (is_symbolic(rows) or is_symbolic(columns)):
            return original(c, r)
        batch = jnp.broadcast_shapes(c.shape[:-1], r.shape[:-1])
        c, r = (jnp.broadcast_to(x, (*batch, x.shape[-1])) for x in (c[..., ::-1], r))
        elements = jnp.concatenate((c, r[..., 1:]), axis=-1)
        positions = (rows - 1) - jnp.arange(rows)[:, None] + jnp.arange(columns)
        return jnp.take(elements, positions, axis=-1, mode="clip")

    return toeplitz


for _function, _stand_in in (
    (TOEPLITZ, _toeplitz),
    (SEARCH_SORTED, _search_sorted),
    (DIAG_INDICES, _diag_indices),
    (DIAG_INDICES_INSIDE, _diag_indices),
    (CONVOLVE, _convolve),
    (CONCRETE, _concrete),
    (FFT_SIZES, map_by(operator.index)),
    (RFFTFREQ, _rfftfreq),
    (SQUEEZE, _squeeze),
):
    register(Patch(_function.target, _stand_in, parameters=_function.parameters))

register(Patch("builtins:len", _len, after=TypeError))
