"""Symbolic sizes in TensorFlow Probability on JAX and in distrax, which expect ints.

NumPyro computes its beta and t distributions with TensorFlow Probability. A size there is an int,
or None for unknown, as in TensorFlow. A symbolic size is neither, but the library's broadcasting
and indexing work for it as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from smelt.frontends.jax.compat import is_symbolic
from smelt.frontends.jax.open_sizes.symbolic_sizes import map_by
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function

STATIC = "tensorflow_probability.substrates.jax.internal.prefer_static"
DIMENSION = "tensorflow_probability.python.internal.backend.jax.gen.tensor_shape:Dimension.__init__"
DISTRAX_MAP = "distrax._src.distributions.distribution:map"
"""Not listed in ``library_functions``, because the development extra lacks these libraries."""


def _vector(sizes: Iterable[Any]) -> np.ndarray:
    """Return sizes as an object array, which the library can join and index like an int array."""
    size_list = [size if is_symbolic(size) else int(size) for size in sizes]
    vector = np.empty(len(size_list), object)
    vector[:] = size_list
    return vector


def _has_symbolic_size(sizes: Any) -> bool:
    """True if ``sizes`` is a shape (a list or a vector) with a symbolic size."""
    is_vector = isinstance(sizes, list | tuple) or np.ndim(sizes) == 1
    return is_vector and any(map(is_symbolic, sizes))


def _dimension(_: Function) -> Function:
    """Return a replacement of ``Dimension.__init__`` that accepts a symbolic size."""

    def init(dimension: Any, value: Any) -> Any:
        """Store the symbolic size; NotImplemented for other values."""
        if not is_symbolic(value):
            return NotImplemented
        dimension._value = value
        return None

    return init


def _shape(original: Function) -> Function:
    """Return a replacement of ``prefer_static.shape`` that returns symbolic sizes."""

    def shape(input: Any, *others: Any, **keywords: Any) -> Any:  # noqa: A002 - its name there
        """Return the sizes of ``input`` as an object array if one is symbolic."""
        sizes = getattr(input, "shape", ())
        return _vector(sizes) if _has_symbolic_size(sizes) else original(input, *others, **keywords)

    return shape


def _shape_tensor(original: Function) -> Function:
    """Return a replacement of ``convert_to_shape_tensor`` that accepts symbolic sizes."""

    def convert_to_shape_tensor(value: Any, *others: Any, **keywords: Any) -> Any:
        """Return symbolic sizes unchanged or as an object array."""
        if is_symbolic(value):
            return value
        sizes = value.as_list() if hasattr(value, "as_list") else value
        if isinstance(sizes, list | tuple | np.ndarray) and _has_symbolic_size(sizes):
            return _vector(sizes)
        return original(value, *others, **keywords)

    return convert_to_shape_tensor


def _rank(original: Function) -> Function:
    """Return a replacement of ``rank_from_shape`` that accepts symbolic sizes."""

    def rank_from_shape(shape_tensor_fn: Any, tensorshape: Any = None) -> Any:
        """Return the rank: the number of sizes in the shape, which a function may compute."""
        sizes = shape_tensor_fn() if callable(shape_tensor_fn) else shape_tensor_fn
        if tensorshape is None and isinstance(sizes, np.ndarray) and _has_symbolic_size(sizes):
            return np.int32(len(sizes))
        return original(shape_tensor_fn, tensorshape)

    return rank_from_shape


register(Patch(DIMENSION, _dimension, optional=True, after=TypeError))
register(Patch(f"{STATIC}:shape", _shape, optional=True))
register(Patch(f"{STATIC}:_shape", _shape, optional=True))
register(Patch(f"{STATIC}:convert_to_shape_tensor", _shape_tensor, optional=True))
register(Patch(f"{STATIC}:rank_from_shape", _rank, optional=True))
register(Patch(DISTRAX_MAP, map_by(int), optional=True))
