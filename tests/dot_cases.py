"""Contractions of every make: counts of batch, free and contracting dims, and operands' dims in
many orders. What layouts cost in Transposes is known for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, permutations, product

import numpy as np

from smelt.program.dot_dims import DotDims

SIZES = (2, 3, 5, 2, 3, 4, 2, 3)
ORDERS = 8
"""Orders of dims that are drawn for each make, where there are more."""


@dataclass(frozen=True)
class DotCase:
    """Operands, whose dims are letters in the order in which they lie, and sizes by letter."""

    lhs: str
    rhs: str
    summed: str
    batch: str
    sizes: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.lhs},{self.rhs}->{self.out}"

    @property
    def out(self) -> str:
        free = [label for label in self.lhs + self.rhs if label not in self.summed + self.batch]
        return self.batch + "".join(free)

    def shape(self, labels: str) -> tuple[int, ...]:
        sizes = dict(self.sizes)
        return tuple(sizes[label] for label in labels)

    @property
    def dims(self) -> DotDims:
        groups = [
            tuple(side.index(label) for label in group)
            for group in (self.summed, self.batch)
            for side in (self.lhs, self.rhs)
        ]
        return DotDims(*groups)

    def fewest_copies(self, *, canonical: bool = False) -> int:
        """Operands that no product of one matrix a batch element can read where they lie.

        Such a product has one step along its rows, one along its columns and one along what it
        sums over, so free dims have to be neighbours in their order, and contracting dims in one
        order on both sides, which is free to choose. Batch dims may lie anywhere. Where nothing is
        summed, both are broadcast in the order of the result. A ``canonical`` product reads
        [batch, free, summed] and [batch, summed, free] alone.
        """
        if not self.summed:
            return sum(side != self.batch + self._free(side) for side in (self.lhs, self.rhs))
        if canonical:
            lhs, rhs = self.batch + self._free(self.lhs), self._free(self.rhs)
            return min(
                (self.lhs != lhs + summed) + (self.rhs != self.batch + summed + rhs)
                for summed in map("".join, permutations(self.summed))
            )
        return min(
            sum(
                not (_is_run(side, order) and _is_run(side, self._free(side)))
                for side in (self.lhs, self.rhs)
            )
            for order in permutations(self.summed)
        )

    def _free(self, side: str) -> str:
        return "".join(label for label in side if label not in self.summed + self.batch)


def _is_run(side: str, labels: Sequence[str]) -> bool:
    places = [side.index(label) for label in labels]
    return all(b == a + 1 for a, b in pairwise(places))


def dot_cases() -> Iterator[DotCase]:
    """Up to two batch, contracting and free dims a side, in up to ``ORDERS`` orders each."""
    rng = np.random.default_rng(0)
    for batch, summed, left, right in product(
        ("", "a", "ab"), ("", "k", "kl"), ("", "m", "mn"), ("", "x", "xy")
    ):
        lhs, rhs = (sorted(permutations(batch + summed + own)) for own in (left, right))
        every = list(product(lhs, rhs))
        if len(every) > ORDERS:
            every = [every[int(i)] for i in rng.choice(len(every), ORDERS, replace=False)]
        labels = batch + summed + left + right
        sizes = tuple(zip(labels, SIZES, strict=False))
        for one, other in every:
            yield DotCase("".join(one), "".join(other), summed, batch, sizes)
