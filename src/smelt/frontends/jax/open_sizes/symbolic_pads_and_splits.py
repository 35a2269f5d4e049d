"""Padding that copies elements (wrap, symmetric, reflect) and splits, on axes of symbolic size.

JAX pads by a number of slices that depends on the size. Here each position of the result computes
the index of its element, for any size of at least 1. If all sizes are numbers, JAX's own code is
traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from smelt.frontends.jax.compat import is_symbolic
from smelt.frontends.jax.patching.library_functions import PAD_MIRROR, PAD_WRAP, SPLIT
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function

Fold = Callable[[Any, Any], Any]
"""``fold(positions, size)`` returns the index of the element that each position copies.

A position counts from the first element of the array; the pads before it have negative ones.
"""


def _wrapped(positions: Any, size: Any) -> Any:
    """Return the index of each position if the array repeats."""
    return jnp.remainder(positions, size)


def _symmetric(positions: Any, size: Any) -> Any:
    """Return the index of each position, mirrored at the edges; the edge element is repeated."""
    within = jnp.remainder(positions, 2 * size)
    return jnp.minimum(within, 2 * size - 1 - within)


def _reflected(positions: Any, size: Any) -> Any:
    """Return the index of each position, mirrored at the edges; the edge is not repeated.

    A single element is repeated.
    """
    period = jnp.maximum(2 * size - 2, 1)
    within = jnp.remainder(positions, period)
    return jnp.minimum(within, period - within)


def _pad_wrap(original: Function) -> Function:
    """Return a replacement of ``_pad_wrap`` for symbolic sizes."""

    def pad_wrap(array: Any, pad_width: Any) -> Any:
        """Return ``array`` padded by its repetition."""
        return _padded(array, pad_width, _wrapped, original)

    return pad_wrap


def _pad_mirror(original: Function) -> Function:
    """Return a replacement of ``_pad_symmetric_or_reflect`` for symbolic sizes."""

    def pad_symmetric_or_reflect(array: Any, pad_width: Any, mode: str, reflect_type: str) -> Any:
        """Return ``array`` padded by its mirror image.

        JAX's own code pads for ``reflect_type="odd"``.
        """

        def pad_by_jax(array: Any, pad_width: Any) -> Any:
            """Return JAX's result for axes whose size and pads are numbers."""
            return original(array, pad_width, mode, reflect_type)

        if reflect_type != "even":
            return pad_by_jax(array, pad_width)
        return _padded(array, pad_width, _FOLDS[mode], pad_by_jax)

    return pad_symmetric_or_reflect


_FOLDS = {"symmetric": _symmetric, "reflect": _reflected}


def _padded(array: Any, pad_width: Any, fold: Fold, pad_by_jax: Function) -> Any:
    """Return ``array`` with the pairs of pads ``pad_width``.

    ``pad_by_jax`` pads the axes whose size and pads are all numbers. On other axes each element is
    read at the index that ``fold`` returns for its position.
    """
    pads = [(before, after) for before, after in pad_width]
    is_open = [any(map(is_symbolic, (array.shape[i], *pad))) for i, pad in enumerate(pads)]
    array = pad_by_jax(array, [(0, 0) if is_open[i] else pad for i, pad in enumerate(pads)])
    for axis, (before, after) in enumerate(pads):
        size = array.shape[axis]
        if is_open[axis] and (before, after) != (0, 0):
            positions = jnp.arange(before + size + after) - before
            array = jnp.take(array, fold(positions, jnp.asarray(size)), axis, mode="clip")
    return array


def _split(original: Function) -> Function:
    """Return a replacement of ``array_split`` into parts that differ by one element at most."""

    def split(op: str, ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
        """Split an array of symbolic size into a known number of parts."""
        parts = indices_or_sections
        is_count = isinstance(parts, int | np.integer) and parts > 0
        is_array = isinstance(ary, jax.Array | np.ndarray)
        if op != "array_split" or not is_count or not is_array or not is_symbolic(ary.shape[axis]):
            return original(op, ary, parts, axis=axis)
        size, parts = ary.shape[axis], int(parts)
        sizes = [(size + (parts - 1 - i)) // parts for i in range(parts)]
        begins = [i * (size // parts) + jnp.minimum(i, size % parts) for i in range(parts)]
        return [
            lax.dynamic_slice_in_dim(ary, begin, length, axis)
            for begin, length in zip(begins, sizes, strict=True)
        ]

    return split


for _function, _stand_in in (
    (PAD_WRAP, _pad_wrap),
    (PAD_MIRROR, _pad_mirror),
    (SPLIT, _split),
):
    register(Patch(_function.target, _stand_in, parameters=_function.parameters))
