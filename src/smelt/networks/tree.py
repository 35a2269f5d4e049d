"""The tree of a contraction: its products, their costs, and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from smelt.ir.html.layered import Edge
from smelt.ir.html.markup import table, titled
from smelt.ir.html.picture import CARRIER, NODE, PORT, Box, drawing
from smelt.operators.contraction import Equation, Labels
from smelt.operators.contraction_paths import Path

MOST_DRAWN = 100
"""The most operands of a tree that is drawn; a larger one is shown as a table only."""


@dataclass(frozen=True)
class Product:
    """A product of two operands, or products, by number; its result has ``labels``."""

    operands: tuple[int, int]
    labels: Labels
    elements: int
    flops: int


@dataclass(frozen=True)
class Tree:
    """The tree of one slice, and the figures of all.

    ``terms`` are the labels of the operands of a slice; products are numbered after them.
    ``slices`` has the sliced labels with their sizes. A symbolic size counts as 64 in all figures.
    """

    equation: str
    path: Path
    terms: tuple[Labels, ...]
    products: tuple[Product, ...]
    slices: Mapping[str, int]
    operand_elements: tuple[int, ...]

    @property
    def count(self) -> int:
        """Return the number of slices; 1 if nothing is sliced."""
        return prod(self.slices.values())

    @property
    def flops(self) -> int:
        """Return the multiplications and additions of all slices, counted as opt_einsum does."""
        return self.count * sum(product.flops for product in self.products)

    @property
    def largest_intermediate(self) -> int:
        """Return the elements of the largest product of a slice but its result; 0 if none."""
        return max((product.elements for product in self.products[:-1]), default=0)

    @property
    def largest_array(self) -> int:
        """Return the elements of the largest operand or product of a slice."""
        return max(*self.operand_elements, *(each.elements for each in self.products), 0)

    def __str__(self) -> str:
        """Return the figures as text, one on each line."""
        return "\n".join(f"{name}: {figure}" for name, figure in self._figures())

    def _figures(self) -> list[tuple[str, object]]:
        """Return the rows of the table of this tree: the name of a figure, and its value."""
        sliced = ", ".join(f"{label}={size}" for label, size in self.slices.items()) or "none"
        return [
            ("equation", self.equation),
            ("products", len(self.products)),
            ("flops", f"{self.flops:.4g}"),
            ("largest intermediate", f"{self.largest_intermediate} elements"),
            ("slices", f"{self.count} ({sliced})"),
        ]

    def _repr_html_(self) -> str:
        """Return the figures, and the tree as a picture if it is not too large."""
        parts = [table(self._figures())]
        if len(self.terms) <= MOST_DRAWN:
            parts.append(self.svg())
        return titled("Contraction tree", *parts)

    def svg(self) -> str:
        """Return the tree as one SVG element: operands above, the result below."""
        boxes = [
            Box(f"{number}: {''.join(term)}", f"operand {number}: {size} elements", PORT)
            for number, (term, size) in enumerate(
                zip(self.terms, self.operand_elements, strict=True)
            )
        ]
        edges: list[Edge] = []
        largest = max((product.elements for product in self.products), default=0)
        for number, product in enumerate(self.products, len(boxes)):
            color = CARRIER if product.elements == largest else NODE
            about = f"{product.elements} elements, {product.flops} flops"
            boxes.append(Box(f"{''.join(product.labels)} [{product.elements}]", about, color))
            edges += [(operand, number) for operand in product.operands]
        return drawing(boxes, edges)


def tree_of(
    equation: Equation,
    whole: Equation,
    path: Path,
    counts: Mapping[str, int],
    slices: Mapping[str, int],
) -> Tree:
    """Return the tree of the slice ``equation`` of ``whole`` by ``path``; ``counts`` are sizes."""
    children, labels = numbered(equation, path)
    leaves = len(equation.terms)
    products: list[Product] = []
    for operands, kept in zip(children, labels[leaves:], strict=True):
        read = {label for operand in operands for label in labels[operand]}
        result = equation.out if len(products) == len(children) - 1 else kept
        flops = prod(counts[label] for label in read) * (1 + bool(read - set(result)))
        elements = prod(counts[label] for label in result)
        products.append(Product(operands, result, elements, flops))
    sizes = tuple(prod(counts[label] for label in term) for term in equation.terms)
    return Tree(str(whole), path, equation.terms, tuple(products), slices, sizes)


def numbered(equation: Equation, path: Path) -> tuple[list[tuple[int, int]], list[Labels]]:
    """Return ``(children, labels)``: the two operands of each product of ``path``, by number, and
    the labels of all operands and products.

    Operands have the numbers 0 to n - 1, products n, n + 1, ... A product keeps the labels that the
    result has, or a value that is multiplied later.
    """
    labels = list(equation.terms)
    children: list[tuple[int, int]] = []
    alive = list(range(len(labels)))
    for pair in path:
        first, second = (alive[i] for i in pair)
        alive = [number for number in alive if number not in (first, second)]
        needed = {*equation.out, *(label for number in alive for label in labels[number])}
        both = dict.fromkeys((*labels[first], *labels[second]))
        children.append((first, second))
        alive.append(len(labels))
        labels.append(tuple(label for label in both if label in needed))
    return children, labels


def path_between(
    start: Sequence[int], root: int, leaves: int, children: Sequence[tuple[int, int]]
) -> Path:
    """Return the path that contracts the values ``start`` to the product ``root``.

    Both are numbers, and ``children`` the pairs, of ``numbered``; ``leaves`` is the number of
    operands. A step of a path is a pair of positions in the list of values that are left.
    """
    alive, path = list(start), list[tuple[int, int]]()
    for number in range(leaves, root + 1):
        first, second = children[number - leaves]
        if first in alive and second in alive:
            path.append((alive.index(first), alive.index(second)))
            alive = [other for other in alive if other not in (first, second)]
            alive.append(number)
    return tuple(path)
