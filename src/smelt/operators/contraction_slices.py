"""Sliced contractions: loops over some summed labels make intermediate results smaller.

A slice is the contraction for one index of each sliced label; the result is the sum of all slices.
Labels are sliced one by one, each time the label that leaves the smallest intermediate results,
then the fewest products (Gray and Kourtis, "Hyper-optimized tensor network contraction", 2021).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from smelt.errors import UsageError
from smelt.ir.same_shape import Dim
from smelt.operators.contraction import UNKNOWN_SIZE, Equation, Finder, Path, find_path
from smelt.operators.contraction_steps import COMBINE, DIAGONAL, DOT, REDUCE, plan_of


@dataclass(frozen=True)
class Slices:
    """Sliced ``labels``, possibly none; ``equation`` and ``path`` are those of one slice."""

    labels: tuple[str, ...]
    equation: Equation
    path: Path


@dataclass(frozen=True)
class _Cost:
    """The largest intermediate result, and the products of all slices."""

    elements: int
    products: int


def slices_within(
    equation: Equation, sizes: Mapping[str, Dim], optimize: str | Path | Finder, limit: int
) -> Slices:
    """Return slices of ``equation`` whose intermediate results have at most ``limit`` elements.

    The part of an operand that a slice reads counts as an intermediate result; a transposed operand
    does not. Symbolic dims count as ``UNKNOWN_SIZE``. Raises UsageError E658 with the smallest size
    reached if no slices fit.
    """
    try:
        path = find_path(equation, sizes, optimize, limit)
        if _cost(equation, (), path, sizes).elements <= limit:
            return Slices((), equation, path)
    except UsageError:
        if not isinstance(optimize, str) and not callable(optimize):
            raise
    labels: tuple[str, ...] = ()
    while True:
        inner = without_labels(equation, labels)
        path = find_path(inner, sizes, optimize)
        cost = _cost(equation, labels, path, sizes)
        if cost.elements <= limit:
            return Slices(labels, inner, path)
        costs = {
            label: _cost(equation, (*labels, label), path, sizes)
            for label in _sliceable(equation, sizes)
            if label not in labels
        }
        if not costs:
            raise _too_large(limit, cost, "even with a slice for each index of every summed dim")
        if not all(isinstance(size, int) for size in sizes.values()):
            raise _too_large(limit, cost, "and slices need known sizes")
        best = min(costs, key=lambda label: (costs[label].elements, costs[label].products))
        labels = (*labels, best)


def _too_large(limit: int, cost: _Cost, reason: str) -> UsageError:
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
    return Equation(tuple(terms), equation.out)


def _sliceable(equation: Equation, sizes: Mapping[str, Dim]) -> list[str]:
    """Return the summed labels of known sizes above 1, in order of appearance."""
    sliceable: dict[str, None] = {}
    for label in (label for term in equation.terms for label in term):
        size = sizes[label]
        if label not in equation.out and isinstance(size, int) and size > 1:
            sliceable[label] = None
    return list(sliceable)


def _cost(
    equation: Equation, labels: tuple[str, ...], path: Path, sizes: Mapping[str, Dim]
) -> _Cost:
    """Return the cost of the contraction by ``path`` in slices of ``labels``.

    The size counts the largest array in memory: a sliced operand, or a result of a step but the
    last.
    """
    counts = {label: d if isinstance(d, int) else UNKNOWN_SIZE for label, d in sizes.items()}
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
    return _Cost(max(sizes_of_results, default=0), repeats * multiplications)
