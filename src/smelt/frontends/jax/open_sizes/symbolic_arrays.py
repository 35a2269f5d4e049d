"""NumPy functions that create arrays from a size: for a symbolic size, jax.numpy computes them.

Library code builds masks, positions and tables with ``np.arange(x.shape[0])``. With numbers,
NumPy's own result is kept, so that Python can compute with it.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from smelt.frontends.jax.compat import is_symbolic, max_dim
from smelt.frontends.jax.open_sizes.traced_sizes import range_length
from smelt.frontends.jax.patching.library_functions import ARANGE, ARANGE_INSIDE, INDEXER_LEAVES
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function

OF_SIZES = ("eye", "full", "identity", "linspace", "ones", "tri", "zeros")
"""Functions with the same name and first parameters in jax.numpy."""

OF_SHAPES = ("broadcast_to", "repeat", "tile")
"""Functions of an array and of its new shape with the same name in jax.numpy."""

_SHARED_KEYWORDS = frozenset(
    {"dtype", "shape", "N", "M", "k", "num", "endpoint", "reps", "repeats", "axis"}
)
"""Keywords with the same meaning in NumPy and jax.numpy."""


def _jax_numpy_for_sizes(original: Function) -> Function:
    """Return a replacement that calls jax.numpy if an argument is a symbolic size."""
    make = getattr(jnp, original.__name__)

    def create(*arguments: Any, **keywords: Any) -> Any:
        """Return the result of jax.numpy; NotImplemented without a symbolic size.

        NotImplemented, too, for a keyword that jax.numpy may treat in another way.
        """
        has_size = any(map(_has_symbolic_size, (*arguments, *keywords.values())))
        if not has_size or keywords.keys() - _SHARED_KEYWORDS:
            return NotImplemented
        return make(*arguments, **keywords)

    return create


def _arange(_: Function) -> Function:
    """Return a replacement of ``np.arange`` for bounds that are sizes, or computed from sizes.

    Whole numbers written as floats, as in ``arange(0.0, n)``, count as integers.
    """

    def arange(*arguments: Any, dtype: Any = None) -> Any:
        """Return the range; NotImplemented if no bound is symbolic or one is not exact."""
        bounds: list[Any] = [
            int(x) if isinstance(x, float) and x.is_integer() else x for x in arguments
        ]
        if not any(map(is_symbolic, bounds)) or any(map(_is_float_or_traced, bounds)):
            return _traced_range(*arguments, dtype=dtype)
        if dtype is None and any(isinstance(x, float) for x in arguments):
            dtype = float
        integers: Any = jnp.arange(*bounds)
        return jax.lax.convert_element_type(integers, dtype or int)

    return arange


def _jax_arange(original: Function) -> Function:
    """Return a replacement of ``jnp.arange`` that accepts floats beside symbolic bounds.

    Bounds may also be traced numbers that the function computes from sizes.
    """
    symbolic_arange = _arange(original)

    def arange(*arguments: Any, **keywords: Any) -> Any:
        """Return the range by ``_arange`` if a bound is a float or traced, else by JAX."""
        result = NotImplemented
        if any(map(_is_float_or_traced, arguments)) and keywords.keys() <= {"dtype"}:
            result = symbolic_arange(*arguments, **keywords)
        return original(*arguments, **keywords) if result is NotImplemented else result

    return arange


def _is_float_or_traced(bound: Any) -> bool:
    """True for a float and for a number that the trace computes."""
    return isinstance(bound, float | jax.core.Tracer)


def _traced_range(*arguments: Any, dtype: Any = None) -> Any:
    """Return a range with exact bounds of any type, such as ``arange(n / 2, n - 4.0, 0.5)``.

    Its elements are ``start + step * iota``, as ``jnp.arange`` computes them for numbers. Returns
    NotImplemented if all bounds are numbers, and if a bound is not known to be exact.
    """
    if not any(is_symbolic(x) or isinstance(x, jax.core.Tracer) for x in arguments):
        return NotImplemented
    if len(arguments) == 1:
        start, stop, step = 0, arguments[0], 1
    else:
        start, stop, step = (*arguments, 1)[:3]
    size = range_length((start, stop, step), max_dim)
    if size is None:
        return NotImplemented
    if dtype is None:
        dtype = jnp.result_type(*(int if is_symbolic(x) else x for x in arguments))
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    is_half = jnp.issubdtype(dtype, jnp.floating) and jnp.finfo(dtype).bits < 32
    compute_dtype = jnp.float32 if is_half else dtype
    first, gap = (jnp.asarray(x).astype(compute_dtype) for x in (start, step))
    counts = jax.lax.broadcasted_iota(compute_dtype, (size,), 0)
    return jax.lax.convert_element_type(first + gap * counts, dtype)


def _broadcast_shapes(_: Function) -> Function:
    """Return a replacement of ``np.broadcast_shapes`` for symbolic sizes.

    JAX calls NumPy's function to check the indices of a ``Ref`` (mutable array).
    """

    def broadcast_shapes(*shapes: Any) -> Any:
        """Return JAX's result for symbolic sizes, else NotImplemented."""
        if not any(map(_has_symbolic_size, shapes)):
            return NotImplemented
        return jnp.broadcast_shapes(*shapes)

    return broadcast_shapes


def _indexer_leaves(original: Function) -> Function:
    """Return a replacement of NDIndexer's ``tree_flatten`` that keeps a symbolic shape static.

    An NDIndexer holds the indices of a ``Ref``. JAX would flatten a symbolic size as an array leaf.
    """

    def tree_flatten(self: Any) -> Any:
        """Return the indices as leaves, and all shapes as static data."""
        if not _has_symbolic_size(self.int_indexer_shape):
            return original(self)
        leaves, tree = jax.tree.flatten(self.indices)
        return leaves, (tree, self.shape, self.int_indexer_shape)

    return tree_flatten


def _has_symbolic_size(argument: Any) -> bool:
    """True for a symbolic size, and for a shape with one."""
    if isinstance(argument, tuple | list):
        return any(map(is_symbolic, argument))
    return is_symbolic(argument)


for _name in (*OF_SIZES, *OF_SHAPES):
    register(Patch(f"numpy:{_name}", _jax_numpy_for_sizes, after=Exception))
register(Patch("numpy:arange", _arange, after=Exception))
register(Patch("numpy:broadcast_shapes", _broadcast_shapes, after=TypeError))
register(Patch(INDEXER_LEAVES.target, _indexer_leaves, parameters=INDEXER_LEAVES.parameters))
for _target in (ARANGE, ARANGE_INSIDE):
    register(Patch(_target.target, _jax_arange, parameters=_target.parameters))
