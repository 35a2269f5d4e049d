"""Reshape targets and axes that merge dims into the dims of a product, and split them again."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from smelt.ir.same_shape import Dim


def unit_dims_of(dims: Sequence[Dim], counts: Sequence[int]) -> tuple[int, ...]:
    """Return the dims of size 1 to squeeze so that each ``counts[i]`` dims become one dim.

    Raises ValueError if more than one of these dims has another size.
    """
    ones: list[int] = []
    start = 0
    for count in counts:
        segment = range(start, start + count)
        spare = [place for place in segment if dims[place] == 1][: max(count - 1, 0)]
        if count - len(spare) != 1:
            raise ValueError("sizes are unknown")
        ones += spare
        start += count
    return tuple(ones)


def merge_target(dims: Sequence[Dim], counts: Sequence[int]) -> tuple[int, ...] | None:
    """Return the Reshape target that merges ``counts[i]`` dims into dim ``i``: for dims B,S,4,8 and
    counts 1,1,2, it is 0,0,32. None if each count is 1."""
    target, start = [], 0
    for index, count in enumerate(counts):
        target.append(_size(dims[start : start + count], at_old_position=index == start))
        start += count
    return _checked_target(target, counts)


def split_target(dims: Sequence[Dim], counts: Sequence[int]) -> tuple[int, ...] | None:
    """Return the Reshape target that splits dim ``i`` into the next ``counts[i]`` of ``dims``; None
    if each count is 1."""
    target, start = [], 0
    for index, count in enumerate(counts):
        segment = dims[start : start + count]
        has_one_dim = sum(dim != 1 for dim in segment) == 1
        target += [
            _size([dim], at_old_position=has_one_dim and index == start + i)
            for i, dim in enumerate(segment)
        ]
        start += count
    return _checked_target(target, counts)


def _size(segment: Sequence[Dim], at_old_position: bool) -> int:
    """Return the size of the merged dims ``segment`` in a Reshape target: their product if known.

    Else 0 (the dim at the same position is copied) if only that dim is not 1, or -1."""
    sizes = [dim for dim in segment if dim != 1]
    numbers = [dim for dim in sizes if isinstance(dim, int)]
    if len(numbers) == len(sizes):
        return prod(numbers)
    return 0 if at_old_position and len(sizes) == 1 and segment[0] != 1 else -1


def _checked_target(target: Sequence[int], counts: Sequence[int]) -> tuple[int, ...] | None:
    """Return ``target``, the sizes for a Reshape that merges or splits ``counts[i]`` dims.

    None if each count is 1: the shape stays. Raises ValueError for two sizes of -1."""
    if all(count == 1 for count in counts):
        return None
    if target.count(-1) > 1:
        raise ValueError("two sizes are unknown")
    return tuple(target)
