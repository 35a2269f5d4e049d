"""Products of several contractions, each computed once: common subexpressions of networks.

Two products are the same if they multiply the same values along the same pairs of dims and keep the
same dims. Labels are renamed by their first occurrence, so their names do not matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from smelt.ir.same_shape import Dim
from smelt.operators.contraction import Equation, Labels, counts_of
from smelt.operators.contraction_paths import Path

FIRST_LABEL = 0x100
"""The character of the first label of a product: letters of many scripts follow it."""

Key = tuple[tuple[int, ...], str]
"""The values that a product reads, and its equation with renamed labels."""


@dataclass(frozen=True)
class SharedProduct:
    """A product of the values numbered ``operands``.

    The operands of all contractions have the first numbers; products follow, in order.
    """

    operands: tuple[int, ...]
    equation: str
    flops: int


@dataclass
class SharedProducts:
    """The products of all contractions added so far, over ``operands`` operands."""

    operands: int
    products: list[SharedProduct] = field(default_factory=list)
    numbers: dict[Key, int] = field(default_factory=dict)
    flops_alone: int = 0

    @property
    def flops(self) -> int:
        """Return the multiplications and additions of all products, counted as opt_einsum does."""
        return sum(each.flops for each in self.products)

    def add(
        self, equation: Equation, numbers: Sequence[int], path: Path, sizes: Mapping[str, Dim]
    ) -> int:
        """Add the contraction of the operands ``numbers`` by ``path``; return the result's number.

        Products that another contraction has are not added again.
        """
        counts = counts_of(sizes)
        alive: list[tuple[int, Labels]] = list(zip(numbers, equation.terms, strict=True))
        if len(alive) == 1:
            return self._product(alive, equation.out, counts)
        for step, pair in enumerate(path):
            chosen = [alive[place] for place in pair]
            alive = [each for place, each in enumerate(alive) if place not in pair]
            needed = {*equation.out, *(label for _, labels in alive for label in labels)}
            chosen.sort(key=lambda each: each[0])
            kept = kept_labels([labels for _, labels in chosen], needed)
            if step == len(path) - 1:
                kept = equation.out
            alive.append((self._product(chosen, kept, counts), kept))
        return alive[0][0]

    def _product(
        self, read: Sequence[tuple[int, Labels]], kept: Labels, counts: Mapping[str, int]
    ) -> int:
        """Return the number of the product of the values ``read``; add it unless it is known.

        ``read`` has numbers and labels, ``kept`` the labels of the result. A single value with just
        these labels is its own product.
        """
        letters: dict[str, str] = {}
        for _, labels in read:
            for label in labels:
                letters.setdefault(label, chr(FIRST_LABEL + len(letters)))
        terms = ["".join(letters[label] for label in labels) for _, labels in read]
        equation = f"{','.join(terms)}->{''.join(letters[label] for label in kept)}"
        values = tuple(number for number, _ in read)
        if len(values) == 1 and terms[0] == equation.partition("->")[2]:
            return values[0]
        is_sum = len(letters) > len(kept)
        flops = prod(counts[label] for label in letters) * (1 + is_sum) * (len(values) > 1)
        self.flops_alone += flops
        if (values, equation) not in self.numbers:
            self.numbers[values, equation] = self.operands + len(self.products)
            self.products.append(SharedProduct(values, equation, flops))
        return self.numbers[values, equation]


def kept_labels(read: Sequence[Labels], needed: set[str]) -> Labels:
    """Return the labels of the values ``read`` that are ``needed`` later, by first occurrence."""
    return tuple(label for label in dict.fromkeys(sum(read, ())) if label in needed)
