"""JAX functions that unroll over a size, as loops whose length is the symbolic size.

If all sizes are numbers, JAX's own code is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from smelt.frontends.jax.compat import is_symbolic
from smelt.frontends.jax.patching.library_functions import ASSOCIATIVE_SCAN, SHUFFLE
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function

LEVELS = 31
"""The number of distances 1, 2, 4, ... below the largest int32 size."""

SHUFFLED_BY = (1, 1625, 2642245)
"""The largest sizes that JAX shuffles by 0, 1 and 2 sorts.

JAX sorts ``ceil(3 * log(size) / log(2**32 - 1))`` times.
"""


def _shuffle(original: Function) -> Function:
    """Return a replacement of ``_shuffle`` whose number of sorts depends on a symbolic size."""

    def shuffle(key: Any, x: Any, axis: int) -> Any:
        """Sort by random keys, as often as JAX does for the run-time size."""
        if not is_symbolic(x.size):
            return original(key, x, axis)

        def sort(_: Any, state: Any) -> Any:
            """Sort ``x`` by new random bits; return the next key and ``x``."""
            key, x = state
            key, drawn = jax.random.split(key)
            sort_keys = jax.random.bits(drawn, x.shape, np.uint32)
            return key, lax.sort_key_val(sort_keys, x, axis)[1]

        sorts = jnp.sum(jnp.asarray(x.size, np.int32) > np.asarray(SHUFFLED_BY, np.int32))
        return lax.fori_loop(0, sorts, sort, (key, x))[1]

    return shuffle


def _associative_scan(original: Function) -> Function:
    """Return a replacement of ``associative_scan`` for an axis of symbolic size."""

    def associative_scan(
        fn: Callable[..., Any], elems: Any, reverse: bool = False, axis: int = 0
    ) -> Any:
        """Scan by doubling if the size of the axis is symbolic."""
        leaves, tree = jax.tree.flatten(elems)
        if not (callable(fn) and is_symbolic(_size(leaves, axis))):
            return original(fn, elems, reverse, axis)

        def combine(before: Sequence[Any], after: Sequence[Any]) -> list[Any]:
            """Return the leaves of ``fn(before, after)``."""
            return jax.tree.leaves(
                fn(jax.tree.unflatten(tree, before), jax.tree.unflatten(tree, after))
            )

        axis %= jnp.ndim(leaves[0])
        if reverse:
            leaves = [jnp.flip(leaf, axis) for leaf in leaves]
        leaves = _doubled(combine, leaves, axis)
        if reverse:
            leaves = [jnp.flip(leaf, axis) for leaf in leaves]
        return jax.tree.unflatten(tree, leaves)

    return associative_scan


def _size(leaves: Sequence[Any], axis: int) -> Any:
    """Return the common size of ``leaves`` along ``axis``; 0 if they differ or lack the axis."""
    shapes = [jnp.shape(leaf) for leaf in leaves]
    rank = len(shapes[0]) if shapes else 0
    if axis not in range(-rank, rank) or any(len(shape) <= axis % rank for shape in shapes):
        return 0
    first, *other_sizes = (shape[axis % rank] for shape in shapes)
    return first if all(size == first for size in other_sizes) else 0


def _doubled(combine: Function, leaves: list[Any], axis: int) -> list[Any]:
    """Combine each element with all before it, over distances of 1, 2, 4 and so on.

    After the step of distance d, an element includes the 2 d elements that end at it. That takes
    log2(size) steps over all elements (Hillis and Steele, Data Parallel Algorithms, 1986). Unlike a
    loop of that many steps, a scan has derivatives.
    """
    size = leaves[0].shape[axis]
    positions = jnp.arange(size, dtype=np.int32)

    def combined_over(distance: Any, after: list[Any]) -> list[Any]:
        """Combine each element with the one ``distance`` before it, where there is one."""
        source = jnp.maximum(positions - distance, 0)
        before = [jnp.take(leaf, source, axis, mode="clip") for leaf in after]
        combined = combine(before, after)
        return [
            lax.select(_broadcast_mask(positions >= distance, leaf, axis), new, leaf)
            for new, leaf in zip(combined, after, strict=True)
        ]

    def step(leaves: list[Any], distance: Any) -> tuple[list[Any], None]:
        """Combine over ``distance`` if it is less than the size."""
        is_within = distance < jnp.asarray(size, np.int32)
        combined = lax.cond(is_within, lambda: combined_over(distance, leaves), lambda: leaves)
        return combined, None

    distances = np.left_shift(1, np.arange(LEVELS), dtype=np.int32)
    return lax.scan(step, [jnp.asarray(leaf) for leaf in leaves], distances)[0]


def _broadcast_mask(mask: Any, leaf: Any, axis: int) -> Any:
    """Return the vector ``mask``, which lies along ``axis``, broadcast to the shape of ``leaf``."""
    return lax.broadcast_in_dim(mask, leaf.shape, (axis,))


for _function, _stand_in in ((SHUFFLE, _shuffle), (ASSOCIATIVE_SCAN, _associative_scan)):
    register(Patch(_function.target, _stand_in, parameters=_function.parameters))
