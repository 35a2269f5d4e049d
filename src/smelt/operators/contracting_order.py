"""Chooses the order in which a product sums over several dims, so that little data is moved.

A product per batch element has one stride along its rows, one along its columns and one along the
contracted dim. So batch dims may lie anywhere, but free dims must be contiguous, and contracting
dims too, in the same order on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from smelt.ir.same_shape import Dim

Pair = tuple[int, int]


@dataclass(frozen=True)
class Side:
    """One operand of a product: its shape, and its free dims, which are neither batch nor
    contracting dims."""

    shape: Sequence[Dim]
    free: Sequence[int]

    def is_readable(self, contracting: Sequence[int]) -> bool:
        """True if a product can sum over ``contracting``, in this order, without a copy."""
        return are_contiguous(self.shape, self.free) and are_contiguous(self.shape, contracting)

    @property
    def elements(self) -> int:
        """Return the number of elements, at least 1; a symbolic dim counts as 1."""
        count = 1
        for dim in self.shape:
            count *= dim if isinstance(dim, int) else 1
        return max(count, 1)


def are_contiguous(shape: Sequence[Dim], dims: Sequence[int]) -> bool:
    """True if ``dims`` are contiguous in this order; dims of size 1 are ignored."""
    long_dims = [
        dim for dim in range(len(shape)) if not (isinstance(shape[dim], int) and shape[dim] == 1)
    ]
    places = [long_dims.index(dim) for dim in dims if dim in long_dims]
    return all(next_place == place + 1 for place, next_place in pairwise(places))


def contracting_order(lhs: Side, rhs: Side, pairs: Sequence[Pair]) -> list[Pair]:
    """Return ``pairs`` of contracting dims in the order that copies the fewest elements.

    The given order and the orders of the dims in either operand are tried.
    """
    if len(pairs) < 2:
        return list(pairs)

    def moved_elements(order: Sequence[Pair]) -> int:
        """Return the number of elements that must be copied to sum in this order."""
        return sum(
            side.elements
            for side, dims in zip((lhs, rhs), zip(*order, strict=True), strict=True)
            if not side.is_readable(dims)
        )

    orders = [list(pairs), sorted(pairs), sorted(pairs, key=lambda pair: pair[1])]
    return min(orders, key=moved_elements)
