"""The steps of a contraction: preparation of operands, pairwise products, a final transpose.

Before the products, repeated labels of an operand become a diagonal, and labels that occur in one
operand only are summed. Intermediate results are written in the order that their reader prefers,
where a product can do so. Programs, models and NumPy execute the steps of ``plan_of``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import prod

from smelt.ir.same_shape import Dim
from smelt.operators.contraction import UNKNOWN_SIZE, Equation, Labels
from smelt.operators.contraction_paths import Path

DIAGONAL, SQUEEZE, REDUCE, DOT, COMBINE, TRANSPOSE = (
    "Diagonal",
    "Squeeze",
    "Reduce",
    "DotGeneral",
    "Combine",
    "Transpose",
)


@dataclass(frozen=True)
class Step:
    """One step: ``inputs`` are numbers of operands (0 to n - 1) or of results of earlier steps (n,
    n + 1, ...); ``labels`` are those of its result.

    ``axes`` are the result dim of each dim (Diagonal), the removed dims (Squeeze, Reduce), or the
    permutation (Transpose). ``dims`` are those of a DotGeneral: contracting and batch dims of each
    side; or, for a Combine (a broadcasting product), the result dims of each side.
    """

    op: str
    inputs: tuple[int, ...]
    labels: Labels
    axes: tuple[int, ...] = ()
    dims: tuple[tuple[int, ...], ...] = ()


@dataclass
class _Planner:
    """Operands and results by number: the labels of each, and the steps so far."""

    sizes: Mapping[str, Dim]
    labels: list[Labels] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def add(
        self,
        op: str,
        inputs: tuple[int, ...],
        labels: Sequence[str],
        *,
        axes: tuple[int, ...] = (),
        dims: tuple[tuple[int, ...], ...] = (),
    ) -> int:
        """Append a step and return the number of its result."""
        self.steps.append(Step(op, inputs, tuple(labels), axes, dims))
        self.labels.append(tuple(labels))
        return len(self.labels) - 1

    def size(self, number: int) -> int:
        """Return the number of elements of an operand, with symbolic dims at a guess."""
        sizes = (self.sizes[label] for label in self.labels[number])
        return prod(size if isinstance(size, int) else UNKNOWN_SIZE for size in sizes)

    def diagonal(self, number: int) -> int:
        """Return the number of the operand with repeated labels merged into diagonals."""
        labels = self.labels[number]
        once = tuple(dict.fromkeys(labels))
        if len(once) == len(labels):
            return number
        axes = tuple(once.index(label) for label in labels)
        return self.add(DIAGONAL, (number,), once, axes=axes)

    def summed(self, number: int, kept_labels: set[str]) -> int:
        """Return the number of the operand summed over labels that are not ``kept_labels``."""
        labels = self.labels[number]
        axes = tuple(i for i, label in enumerate(labels) if label not in kept_labels)
        if not axes:
            return number
        remaining_labels = [label for label in labels if label in kept_labels]
        ones = all(self.sizes.get(labels[axis]) == 1 for axis in axes)
        return self.add(SQUEEZE if ones else REDUCE, (number,), remaining_labels, axes=axes)

    def product(self, a: int, b: int, order: Labels) -> int:
        """Append one DotGeneral with batch dims ordered as in ``order``, and return its number.

        If nothing is summed, it is a broadcasting product in the order of ``order``.
        """
        x, y = self.labels[a], self.labels[b]
        shared = [label for label in x if label in y]
        batch = [label for label in order if label in shared]
        summed = [label for label in shared if label not in order]
        if not summed:
            return self._add_product(a, b, order)
        return self._dot(a, b, batch, summed)

    def _add_product(self, a: int, b: int, labels: Labels) -> int:
        """Append a broadcasting product, after transposing operands to the order of ``labels``."""
        sides = []
        for number in (a, b):
            side_labels = self.labels[number]
            order = tuple(label for label in labels if label in side_labels)
            perm = tuple(side_labels.index(label) for label in order)
            sides.append(
                number if order == side_labels else self.add(TRANSPOSE, (number,), order, axes=perm)
            )
        dims = tuple(tuple(labels.index(label) for label in self.labels[side]) for side in sides)
        return self.add(COMBINE, tuple(sides), labels, dims=dims)

    def _dot(self, a: int, b: int, batch: Sequence[str], summed: Sequence[str]) -> int:
        """Add the product of ``a`` and ``b`` over the labels ``summed``; return its number.

        ``dims`` are the positions of the labels, in the order of DotGeneral: those of ``a``, then
        of ``b``, first of ``summed``, then of ``batch``.
        """
        left_labels, right_labels = self.labels[a], self.labels[b]
        dims = tuple(
            tuple(side.index(label) for label in group)
            for group in (summed, batch)
            for side in (left_labels, right_labels)
        )
        shared = {*summed, *batch}
        free = [label for label in (*left_labels, *right_labels) if label not in shared]
        return self.add(DOT, (a, b), (*batch, *free), dims=dims)


def plan_of(
    equation: Equation, path: Path, sizes: Mapping[str, Dim], *, small_right: bool = False
) -> tuple[tuple[Step, ...], int]:
    """Return the steps that contract operands by ``path``, and the number of the result.

    ``sizes`` say which dims are 1: summing them is a Squeeze. With ``small_right``, the smaller of
    two operands comes second if their order is free. Dims of size 0 are summed last: a sum of
    nothing is zero, whatever it would be multiplied by.
    """
    return _planned(equation, tuple(map(tuple, path)), tuple(sizes.items()), small_right)


@lru_cache(16)  # a target lowers an operator once to test for support, and once to run it
def _planned(
    equation: Equation, path: Path, size_items: tuple[tuple[str, Dim], ...], small_right: bool
) -> tuple[tuple[Step, ...], int]:
    """Return the result of ``plan_of``, cached; ``size_items`` are the items of ``sizes``.

    In the code, ``alive`` lists the number of each prepared operand, then of each product.
    """
    sizes = dict(size_items)
    # Labels of size 0 are kept until the end, then summed.
    empty = [label for label in _summed(equation) if sizes[label] == 0]
    if empty:
        kept_equation = Equation(equation.terms, (*equation.out, *empty))
        steps, unsummed = _planned(kept_equation, path, size_items, small_right)
        axes = tuple(range(len(equation.out), len(kept_equation.out)))
        steps = (*steps, Step(REDUCE, (unsummed,), equation.out, axes))
        return steps, len(equation.terms) + len(steps) - 1
    # Prepare the operands: diagonals, then sums of labels that only one operand has.
    planner = _Planner(sizes, list(equation.terms))
    alive = [planner.diagonal(number) for number in range(len(equation.terms))]
    counts: dict[str, int] = dict.fromkeys(equation.out, 1)
    for number in alive:
        for label in planner.labels[number]:
            counts[label] = counts.get(label, 0) + 1
    kept = {label for label, count in counts.items() if count > 1}
    alive = [planner.summed(number, kept) for number in alive]
    tree = _Tree([planner.labels[number] for number in alive], path, equation.out)
    for first, second, order in tree.pairs():
        a, b = alive[first], alive[second]
        if small_right and len(alive) < len(tree.labels) - 1 and planner.size(b) > planner.size(a):
            a, b = b, a
        alive.append(planner.product(a, b, order))
    result = alive[-1]
    if planner.labels[result] != equation.out:
        perm = tuple(planner.labels[result].index(label) for label in equation.out)
        result = planner.add(TRANSPOSE, (result,), equation.out, axes=perm)
    return tuple(planner.steps), result


def _summed(equation: Equation) -> list[str]:
    """Return the labels that are not in the result, in order of appearance."""
    labels = dict.fromkeys(label for term in equation.terms for label in term)
    return [label for label in labels if label not in equation.out]


class _Tree:
    """The contraction tree by number, and the preferred dim order of each operand and result.

    ``labels[i]`` are the labels of operand or result ``i``, in that order.
    """

    def __init__(self, terms: Sequence[Labels], path: Path, out: Labels) -> None:
        """Build the tree from ``path``, then choose orders from the result back to the operands.

        ``counts`` has, for each label, how many operands that are alive have it, and the result. A
        product keeps the labels that are still in use: ``ij,jk,kl->il`` by the pairs (0, 1), (0, 1)
        makes the operands 0, 1, 2, the product 3 with the labels ``ik``, and the result 4.
        """
        self.labels = list(terms)
        self.children: list[tuple[int, int]] = []
        counts: dict[str, int] = dict.fromkeys(out, 1)
        for term in terms:
            for label in term:
                counts[label] = counts.get(label, 0) + 1
        alive = list(range(len(terms)))
        for pair in path:
            first, second = (alive[i] for i in pair)
            for place in sorted(pair, reverse=True):
                del alive[place]
            alive.append(len(self.labels))
            all_labels = dict.fromkeys((*self.labels[first], *self.labels[second]))
            for label in (*self.labels[first], *self.labels[second]):
                counts[label] -= 1
            self.children.append((first, second))
            self.labels.append(tuple(label for label in all_labels if counts[label]))
            for label in self.labels[-1]:
                counts[label] += 1
        self.labels[-1] = out
        for number in range(len(self.labels) - 1, len(terms) - 1, -1):
            self._order_operands(len(terms), number)

    def pairs(self) -> list[tuple[int, int, Labels]]:
        """Return ``(first operand, second operand, preferred dim order)`` of each product."""
        first = len(self.labels) - len(self.children)
        return [(a, b, self.labels[first + i]) for i, (a, b) in enumerate(self.children)]

    def _order_operands(self, leaves: int, number: int) -> None:
        """Choose the dim order of the operands of result ``number``.

        Left: batch, free, summed. Right: batch, summed, free. If nothing is summed, both have the
        order of the result.
        """
        result_labels = self.labels[number]
        first, second = self.children[number - leaves]
        first_free = self._free_labels(first, second, result_labels)
        second_free = self._free_labels(second, first, result_labels)
        if first_free and second_free:
            starts = [result_labels.index(free[0]) for free in (first_free, second_free)]
            if starts[1] < starts[0]:
                first, second = second, first
                first_free, second_free = second_free, first_free
                self.children[number - leaves] = (first, second)
        first_labels, second_labels = self.labels[first], self.labels[second]
        batch = [
            label for label in result_labels if label in first_labels and label in second_labels
        ]
        # An operand of the equation has its order already, so the other operand follows it.
        reference_order = first_labels if first < leaves or second >= leaves else second_labels
        summed = [
            label
            for label in reference_order
            if label in first_labels and label in second_labels and label not in result_labels
        ]
        orders = ((*batch, *first_free, *summed), (*batch, *summed, *second_free))
        for operand, order in zip((first, second), orders, strict=True):
            if operand >= leaves:
                labels = self.labels[operand]
                as_in_result = tuple(label for label in result_labels if label in labels)
                self.labels[operand] = order if summed else as_in_result

    def _free_labels(self, operand: int, other: int, result_labels: Sequence[str]) -> list[str]:
        """Return the labels that only ``operand`` has, in the order of the result."""
        labels, other_labels = self.labels[operand], self.labels[other]
        return [label for label in result_labels if label in labels and label not in other_labels]
