"""Contraction paths in the format of opt_einsum, and slices that a finder or a tree brings along.

A path numbers the operands that are left; each step removes some and appends their product.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

from smelt.errors import UsageError
from smelt.ir.same_shape import Dim
from smelt.operators.contraction import Equation, counts_of
from smelt.operators.contraction_finders import (
    finder_named,
    finds_trees,
    is_of,
    is_tree,
    path_by,
    searched_tree,
    tree_named,
)

Path = Sequence[Sequence[int]]
Finder: TypeAlias = Callable[..., Path]
"""Finds a path from operands as sets of labels, result labels, sizes and the memory limit: a
``PathOptimizer`` of opt_einsum, or an optimizer of cotengra."""
Optimize: TypeAlias = str | bool | Path | Finder | Any
"""A finder, its name, a path, or a ``ContractionTree`` of cotengra; True, False and None are
``auto``, for callers of NumPy and opt_einsum."""

FEW_PRODUCTS, THOROUGH = 10**10, "auto-hq"
"""If the path of ``auto`` needs more multiplications than ``FEW_PRODUCTS``, a second or more of a
run, the finder ``THOROUGH`` is tried, too; its search takes seconds. For a network of 20 sites with
two operators between two states, ``auto`` needs 4e11 multiplications, and the best path 7e4."""


@dataclass(frozen=True)
class FoundPath:
    """A path of pairs, and the ``sliced`` labels; ``tree`` is cotengra's, if it found the path."""

    pairs: tuple[tuple[int, int], ...]
    sliced: tuple[str, ...] = ()
    tree: Any = None


def find_path(
    equation: Equation,
    sizes: Mapping[str, Dim],
    optimize: Optimize = "auto",
    memory_limit: int | None = None,
) -> tuple[tuple[int, int], ...]:
    """Return the pairs of ``found_path``."""
    return found_path(equation, sizes, optimize, memory_limit).pairs


def with_default_finder(optimize: Optimize) -> Optimize:
    """Return ``optimize``, with ``auto`` in place of True, False and None."""
    return "auto" if optimize is None or isinstance(optimize, bool) else optimize


def found_path(
    equation: Equation,
    sizes: Mapping[str, Dim],
    optimize: Optimize = "auto",
    memory_limit: int | None = None,
) -> FoundPath:
    """Return the path that ``optimize`` finds or is.

    ``memory_limit``, the most elements of an intermediate result, is given to finders that take
    one. Raises UsageError E658 for an unknown name, a finder that fails, a path that does not
    contract all operands, or a tree of another network.
    """
    count = len(equation.terms)
    optimize = with_default_finder(optimize)
    if is_tree(optimize):
        return _of_tree(optimize, equation, sizes)
    if not isinstance(optimize, str) and not callable(optimize) and not hasattr(optimize, "search"):
        return FoundPath(as_pairs(optimize, count))
    finder: Any = finder_named(optimize) if isinstance(optimize, str) else optimize
    if count < 3 and (isinstance(optimize, str) or is_of(finder, "opt_einsum")):
        return FoundPath(((0, 1),) if count == 2 else ())
    counts = counts_of(sizes)
    if finds_trees(finder):
        if isinstance(optimize, str):
            return _of_tree(tree_named(optimize, equation, counts), equation, sizes)
        return _of_tree(searched_tree(finder, equation, counts), equation, sizes)
    path = path_by(finder, equation, counts, memory_limit)
    if optimize == "auto" and _count_products(path, equation, counts) > FEW_PRODUCTS:
        random_state = random.getstate()  # the finder leaves it seeded
        thorough = path_by(finder_named(THOROUGH), equation, counts, memory_limit)
        random.setstate(random_state)
        path = min(path, thorough, key=lambda path: _count_products(path, equation, counts))
    # An object is called once only; slices then make its results smaller.
    if isinstance(optimize, str) and any(len(group) > 2 for group in path):
        raise UsageError(
            "E658",
            f"no path was found whose results have at most {memory_limit} elements",
            fix="allow more with memory_limit=, or try optimize='dp'",
            why="each order of the contractions has a larger result",
        )
    return FoundPath(as_pairs(path, count))


def _of_tree(tree: Any, equation: Equation, sizes: Mapping[str, Dim]) -> FoundPath:
    """Return the path and the slices of a ``ContractionTree`` of cotengra.

    Labels of the tree are matched with those of ``equation`` by their place in the operands. Raises
    UsageError E658 for a tree of another network, or one that keeps a single index of a label.
    """
    terms = [tuple(term) for term in tree.inputs]
    ours = [tuple(term) for term in equation.terms]
    if [len(set(term)) for term in terms] != [len(set(term)) for term in ours]:
        raise _of_another(f"its operands have {[len(term) for term in terms]} dims")
    label_of: dict[Any, str] = {}
    for term, own in zip(terms, ours, strict=True):
        dims = tuple(dict.fromkeys(own)) if len(term) < len(own) else own
        for label, of_equation in zip(term, dims, strict=True):
            earlier = label_of.setdefault(label, of_equation)
            size, expected = tree.size_dict[label], sizes[of_equation]
            # A dim of size 1 that broadcasts has a label of its own in our equation.
            if earlier != of_equation and 1 not in (expected, sizes[earlier]):
                raise _of_another(f"its label {label!r} corresponds to two labels of the equation")
            if isinstance(expected, int) and expected not in (size, 1):
                raise _of_another(f"its label {label!r} has the size {size}, not {expected}")
            if sizes[earlier] == 1:
                label_of[label] = of_equation
    if {label_of.get(label) for label in tree.output} != set(equation.out):
        raise _of_another(f"its result has the labels {list(tree.output)}")
    for label, slice_ in tree.sliced_inds.items():
        if getattr(slice_, "project", None) is not None:
            raise _of_another(f"it has one index of {label!r} only")
    sliced = tuple(label_of[label] for label in tree.sliced_inds)
    return FoundPath(as_pairs(tree.get_path(), len(ours)), sliced, tree)


def _of_another(why: str) -> UsageError:
    """Return E658: the tree is not one of the equation."""
    return UsageError(
        "E658",
        "the contraction tree is that of another network",
        why=why,
        fix="make the tree from the same equation and the same shapes",
    )


def as_pairs(path: Any, count: int) -> tuple[tuple[int, int], ...]:
    """Return ``path`` as pairs that contract ``count`` operands; raises UsageError E658.

    A step with one operand, such as ``(0,)`` of opt_einsum, only moves it to the end; a step with
    several contracts them from left to right. The first item of ``numpy.einsum_path`` is left out.
    """
    try:
        steps = [() if isinstance(step, str) else tuple(int(i) for i in step) for step in path]
        if any(isinstance(step, str) and step != "einsum_path" for step in path):
            raise TypeError("a step is no text")
    except (TypeError, ValueError) as error:
        raise UsageError(
            "E658",
            f"{_short(path)} is not a path",
            fix="give pairs of operand numbers, such as [(0, 1), (0, 1)]",
            why="each step of a path is a pair of whole numbers",
        ) from error
    pairs: list[tuple[int, int]] = []
    # Both lists hold operand numbers: ``given`` in the order of the given path, whose steps may
    # move an operand to the end; ``own`` in the order of the returned pairs, which never do.
    given, own, next_number = list(range(count)), list(range(count)), count
    for step in filter(None, steps):
        if len(set(step)) != len(step) or not all(0 <= i < len(given) for i in step):
            raise _wrong_step(step, len(given))
        group = [given[i] for i in step]
        given = [number for i, number in enumerate(given) if i not in step]
        first = group[0]
        for second in group[1:]:
            places = sorted((own.index(first), own.index(second)))
            pairs.append((places[0], places[1]))
            own = [number for number in own if number not in (first, second)]
            own.append(first := next_number)
            next_number += 1
        given.append(first)
    check_path(pairs, count)
    return tuple(pairs)


def _short(value: Any) -> str:
    """Return the text of ``value``, shortened to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _wrong_step(step: Sequence[int], remaining: int) -> UsageError:
    """Return E658: ``step`` does not fit the operands that are left."""
    return UsageError(
        "E658",
        f"{tuple(step)} does not name two of {remaining} operands",
        why="after each step, the operands left are numbered from 0 on",
        fix=f"choose two different numbers below {remaining}",
    )


def check_path(path: Path, count: int) -> None:
    """Raise UsageError E658 unless ``path`` contracts ``count`` operands to one by pairs."""
    remaining = count
    for pair in path:
        if len(set(pair)) != 2 or not all(0 <= i < remaining for i in pair):
            raise _wrong_step(pair, remaining)
        remaining -= 1
    if remaining > 1:
        raise UsageError(
            "E658",
            f"the path leaves {remaining} operands",
            fix=f"add {remaining - 1} pairs to the path",
            why="a path contracts all operands to one",
        )


def _count_products(path: Path, equation: Equation, counts: Mapping[str, int]) -> int:
    """Return the number of multiplications of a contraction by ``path``."""
    operands = [frozenset(term) for term in equation.terms]
    out = frozenset(equation.out)
    total = 0
    for group in path:
        contracted = [operands.pop(i) for i in sorted(group, reverse=True)]
        read = frozenset().union(*contracted)
        total += prod(counts[label] for label in read)
        operands.append(read & out.union(*operands))
    return total
