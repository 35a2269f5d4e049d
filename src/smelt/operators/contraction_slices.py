"""Sliced contractions: loops over some labels make intermediate results smaller.

A slice is the contraction for one index of each sliced label. The result is the sum of the slices
over summed labels; slices over labels of the result are parts of it. Labels are sliced one by one,
each time the label that leaves the smallest intermediate results, then the fewest products (Gray
and Kourtis, "Hyper-optimized tensor network contraction", 2021). Where cotengra is installed, its
slices are compared with these, and the cheaper ones are used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod

from smelt.errors import UsageError
from smelt.ir.same_shape import Dim
from smelt.operators.contraction import Equation, counts_of
from smelt.operators.contraction_finders import is_of, tree_from_path
from smelt.operators.contraction_paths import (
    FoundPath,
    Optimize,
    Path,
    found_path,
    with_default_finder,
)
from smelt.operators.contraction_steps import COMBINE, DIAGONAL, DOT, REDUCE, plan_of


@dataclass(frozen=True)
class Slices:
    """Sliced ``labels``, possibly none; ``equation`` and ``path`` are those of one slice."""

    labels: tuple[str, ...]
    equation: Equation
    path: Path


@dataclass(frozen=True, order=True)
class Cost:
    """The largest intermediate result, and the products of all slices."""

    elements: int
    products: int


def slices_of(
    equation: Equation, sizes: Mapping[str, Dim], optimize: Optimize, limit: int | None
) -> Slices:
    """Return the path of ``optimize``, with its slices and those that ``limit`` needs.

    No intermediate result of a slice has more than ``limit`` elements, if given. The part of an
    operand that a slice reads counts as an intermediate result; a transposed operand and the result
    do not. Symbolic dims count as ``UNKNOWN_SIZE``. Raises UsageError E658 with the smallest size
    reached if no slices fit.
    """
    optimize = with_default_finder(optimize)
    found: FoundPath | None = None
    try:
        found = found_path(equation, sizes, optimize, limit)
    except UsageError:
        # Finders of opt_einsum, such as DynamicProgramming, may fail for the limit alone.
        if limit is None or not (isinstance(optimize, str) or is_of(optimize, "opt_einsum")):
            raise
    if found is not None:
        _check_sizes_known(found.sliced, sizes)
        slices = Slices(found.sliced, without_labels(equation, found.sliced), found.pairs)
        if limit is None or cost_of(equation, slices.labels, slices.path, sizes).elements <= limit:
            return slices
    assert limit is not None
    choices = [_greedy(equation, sizes, optimize, limit, found)]
    if find_spec("cotengra") is not None and all(
        isinstance(n, int) and n > 0 for n in sizes.values()
    ):
        choices.append(_by_cotengra(equation, sizes, optimize, limit, found))
    fitting = [slices for slices, cost in choices if cost.elements <= limit]
    if fitting:
        return min(
            fitting, key=lambda each: cost_of(equation, each.labels, each.path, sizes).products
        )
    if not all(isinstance(size, int) for size in sizes.values()):
        raise _too_large(limit, choices[0][1], "and slices need known sizes")
    least = min(cost for _, cost in choices)
    raise _too_large(limit, least, "even with a slice for each index of every dim")


def _check_sizes_known(labels: tuple[str, ...], sizes: Mapping[str, Dim]) -> None:
    """Raise UsageError E658 if a sliced label has a symbolic size."""
    for label in labels:
        if not isinstance(sizes[label], int):
            raise UsageError(
                "E658",
                f"the dim {label!r} is sliced, and its size is {sizes[label]}",
                why="slices need known sizes",
                fix="give a number as the size of this dim",
            )


def _greedy(
    equation: Equation,
    sizes: Mapping[str, Dim],
    optimize: Optimize,
    limit: int,
    found: FoundPath | None,
) -> tuple[Slices, Cost]:
    """Return slices over the labels of ``found``, and over more labels until ``limit`` is kept; and
    their cost.

    Each time, the label of least cost is added. If ``optimize`` is a name, the finder searches a
    new path for each set of slices; an object keeps its path, since an optimizer of opt_einsum
    serves one equation. The cost is above ``limit`` if slices do not help, or sizes are symbolic.
    """
    found = found_path(equation, sizes, optimize) if found is None else found
    labels = found.sliced
    asks_again = isinstance(optimize, str) and found.tree is None
    while True:
        inner = without_labels(equation, labels)
        path = found_path(inner, sizes, optimize).pairs if asks_again else found.pairs
        cost = cost_of(equation, labels, path, sizes)
        candidates = [label for label in _sliceable(equation, sizes) if label not in labels]
        if cost.elements <= limit or not candidates:
            return Slices(labels, inner, path), cost
        if not all(isinstance(size, int) for size in sizes.values()):
            return Slices(labels, inner, path), cost
        costs = {label: cost_of(equation, (*labels, label), path, sizes) for label in candidates}
        labels = (*labels, min(costs, key=lambda label: costs[label]))


def _by_cotengra(
    equation: Equation,
    sizes: Mapping[str, Dim],
    optimize: Optimize,
    limit: int,
    found: FoundPath | None,
) -> tuple[Slices, Cost]:
    """Return the slices of cotengra for the tree that was found, and their cost."""
    found = found_path(equation, sizes, optimize) if found is None else found
    counts = counts_of(sizes)
    tree, label_of = tree_from_path(equation, counts, found.pairs)
    for label in found.sliced:
        tree.remove_ind_({own: letter for letter, own in label_of.items()}[label])
    tree.slice_(target_size=limit, temperature=0.0, seed=0)
    labels = tuple(label_of[letter] for letter in tree.sliced_inds)
    path = found_path(equation, sizes, [tuple(step) for step in tree.get_path()]).pairs
    slices = Slices(labels, without_labels(equation, labels), path)
    return slices, cost_of(equation, labels, path, sizes)


def _too_large(limit: int, cost: Cost, reason: str) -> UsageError:
    """Return E658: the best path found has ``cost``; ``reason`` says why no slices help."""
    return UsageError(
        "E658",
        f"no path was found whose results have at most {limit} elements",
        why=f"the largest result of the best path has {cost.elements} elements, {reason}",
        fix=f"allow memory_limit={cost.elements}, or try optimize='dp'",
    )


def without_labels(equation: Equation, labels: tuple[str, ...]) -> Equation:
    """Return the equation of one slice: ``equation`` without ``labels``."""
    terms = [tuple(label for label in term if label not in labels) for term in equation.terms]
    return Equation(tuple(terms), tuple(label for label in equation.out if label not in labels))


def _sliceable(equation: Equation, sizes: Mapping[str, Dim]) -> list[str]:
    """Return the labels of known sizes above 1: summed ones first, in order of appearance."""
    labels = dict.fromkeys(label for term in equation.terms for label in term)
    known = [n for n in labels if isinstance(size := sizes[n], int) and size > 1]
    return sorted(known, key=lambda label: label in equation.out)


def cost_of(
    equation: Equation, labels: tuple[str, ...], path: Path, sizes: Mapping[str, Dim]
) -> Cost:
    """Return the cost of the contraction by ``path`` in slices of ``labels``.

    ``elements`` is the size of the largest array: the part of a sliced operand, or the result of a
    step other than the last.
    """
    counts = counts_of(sizes)
    sliced = without_labels(equation, labels)
    steps, result = plan_of(sliced, path, sizes)
    labels_of: list[tuple[str, ...]] = list(sliced.terms)
    sizes_of_results = [
        prod(counts[label] for label in term)
        for term, unsliced in zip(sliced.terms, equation.terms, strict=True)
        if term != unsliced
    ]
    multiplications = 0
    for step in steps:
        labels_read = {label for operand in step.inputs for label in labels_of[operand]}
        labels_of.append(step.labels)
        if step.op in (DOT, COMBINE, REDUCE, DIAGONAL):
            multiplications += prod(counts[label] for label in labels_read)
            if len(labels_of) - 1 != result:
                sizes_of_results.append(prod(counts[label] for label in step.labels))
    repeats = prod(counts[label] for label in labels)
    return Cost(max(sizes_of_results, default=0), repeats * multiplications)
