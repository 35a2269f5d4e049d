"""Equations of contractions, the sizes of their labels, and contraction paths.

A path has the format of opt_einsum.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from math import prod
from typing import TypeAlias

from smelt.errors import UsageError
from smelt.ir.same_shape import Dim, same_dim

Labels = tuple[str, ...]
Path = Sequence[Sequence[int]]
Finder: TypeAlias = Callable[..., Path]
"""Finds a path from operands as sets of labels, result labels, sizes and the memory limit: a
``PathOptimizer`` of opt_einsum, or an optimizer of cotengra."""

UNKNOWN_SIZE = 64
"""Assumed size of a symbolic dim when a path is chosen."""


FEW_PRODUCTS, THOROUGH = 10**10, "auto-hq"
"""If the path of ``auto`` needs more products than this, a second or more of a run, the finder
THOROUGH is tried, too, which takes seconds. With 20 sites of two operators between two states,
``auto`` needs 4e11 products, and the best path 7e4."""


@dataclass(frozen=True)
class Equation:
    """The labels of each operand and of the result; dims under an ellipsis count from the back."""

    terms: tuple[Labels, ...]
    out: Labels

    def __str__(self) -> str:
        """Return the equation as text, with a separate character for each dim under an ellipsis.

        Those characters come from the end of Unicode's private range.
        """
        labels = dict.fromkeys(label for term in self.terms for label in term)
        unused = (c for c in map(chr, range(0xF8FE, 0xE000, -1)) if c not in labels)
        letters = {label: label if len(label) == 1 else next(unused) for label in labels}
        *terms, out = (
            "".join(letters[label] for label in term) for term in (*self.terms, self.out)
        )
        return f"{','.join(terms)}->{out}"


def parse(equation: str, ranks: Sequence[int]) -> Equation:
    """Return ``equation`` for operands of ``ranks``.

    Labels are any characters except ``,->.`` and blanks. Without an arrow, the result has the dims
    under ellipses, then the labels that occur once, sorted. Raises ValueError with a sentence if
    the equation does not fit.
    """
    text = "".join(equation.split())
    operands_text, arrow, result_text = text.partition("->")
    terms = operands_text.split(",")
    if len(terms) != len(ranks):
        raise ValueError(f"equation {equation!r} does not fit {len(ranks)} operands")
    for term in (*terms, result_text):
        if set(term.replace("...", "")) & set(".->,"):
            raise ValueError(f"{term!r} is no term of an equation")
    ellipsis_ranks = [
        rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)
    ]
    for term, count, rank in zip(terms, ellipsis_ranks, ranks, strict=True):
        if count < 0 or (count and "..." not in term):
            raise ValueError(f"term {term!r} does not fit an operand of {rank} dims")
    largest_ellipsis = max(
        (n for t, n in zip(terms, ellipsis_ranks, strict=True) if "..." in t), default=0
    )
    labels = [_expand(term, count) for term, count in zip(terms, ellipsis_ranks, strict=True)]
    if arrow:
        out = _expand(result_text, largest_ellipsis)
    else:
        letters = [label for term in labels for label in term if len(label) == 1]
        labels_once = sorted(label for label in set(letters) if letters.count(label) == 1)
        out = (*_expand("...", largest_ellipsis), *labels_once)
    if len(set(out)) < len(out):
        raise ValueError(f"the result of {equation!r} repeats a label")
    all_labels = {label for term in labels for label in term}
    for label in out:
        if label not in all_labels:
            raise ValueError(f"no operand of {equation!r} has the dim {label!r} of the result")
    return Equation(tuple(labels), out)


def _expand(term: str, hidden: int) -> Labels:
    """Return the labels of ``term``, with ``hidden`` labels in place of its ellipsis."""
    before, dots, after = term.partition("...")
    if "..." in after:
        raise ValueError(f"{term!r} has two ellipses")
    middle = [f"...{i}" for i in range(hidden, 0, -1)] if dots else []
    return (*before, *middle, *after)


def sizes_of(terms: Sequence[Labels], shapes: Sequence[Sequence[Dim]]) -> dict[str, Dim]:
    """Return the size of each label; a size of 1 broadcasts. Raises ValueError if others differ."""
    sizes: dict[str, Dim] = {}
    for term, shape in zip(terms, shapes, strict=True):
        for label, dim in zip(term, shape, strict=True):
            earlier = sizes.setdefault(label, dim)
            if earlier is dim:
                continue
            if earlier == 1:
                sizes[label] = dim
            elif dim != 1 and not same_dim(earlier, dim):
                raise ValueError(
                    f"sizes {earlier} and {dim} of {label!r} are not known to be equal"
                )
    return sizes


def with_labels_for_ones(equation: Equation, shapes: Sequence[Sequence[Dim]]) -> Equation:
    """Return ``equation`` with new labels for dims of size 1 that broadcast against larger dims.

    The sum over such a dim is its only element. Afterwards equal labels have equal sizes.
    """
    sizes = sizes_of(equation.terms, shapes)
    used = {label for term in equation.terms for label in term}
    unused = (label for label in map(chr, range(0xE000, 0xF8FF)) if label not in used)
    terms: list[tuple[str, ...]] = []
    for term, shape in zip(equation.terms, shapes, strict=True):
        labels = list(term)
        for axis, dim in enumerate(shape):
            if dim == 1 and sizes[labels[axis]] != 1:
                labels[axis] = next(unused)
        terms.append(tuple(labels))
    return Equation(tuple(terms), equation.out)


def find_path(
    equation: Equation,
    sizes: Mapping[str, Dim],
    optimize: str | Path | Finder = "auto",
    memory_limit: int | None = None,
) -> list[tuple[int, ...]]:
    """Return the contraction path in opt_einsum's numbering: results are appended.

    ``optimize`` names a finder of opt_einsum or cotengra, or is a finder or a path;
    ``memory_limit`` is the most elements of an intermediate result. Raises UsageError E658.
    """
    count = len(equation.terms)
    if not isinstance(optimize, str) and not callable(optimize):
        path = _pairs(optimize)
        check_path(path, count)
        return path
    if count < 3:
        if not callable(optimize) and optimize != "auto":
            _finder(optimize)  # refuses an unknown name
        return _only_path(count)
    finder = optimize if callable(optimize) else _finder(optimize)
    pairs = _pairs(_found_path(finder, equation, sizes, memory_limit, retry=optimize == "auto"))
    if callable(optimize) and all(len(pair) < 3 for pair in pairs):
        check_path(pairs, count)
    if any(len(pair) > 2 for pair in pairs):
        raise UsageError(
            "E658",
            f"no path was found whose results have at most {memory_limit} elements",
            fix="allow more with memory_limit=, or try optimize='dp'",
            why="each order of the contractions has a larger result",
        )
    return pairs


def _only_path(count: int) -> list[tuple[int, ...]]:
    """Return the only contraction path of ``count`` operands, which are at most two."""
    return [(0, 1)] if count == 2 else []


def _found_path(
    finder: Finder,
    equation: Equation,
    sizes: Mapping[str, Dim],
    memory_limit: int | None,
    *,
    retry: bool,
) -> Path:
    """Return the path that ``finder`` finds.

    With ``retry``, a path of many multiplications is replaced by that of a slower finder if that
    one has fewer.
    """
    # Numbers, because the order of a set of texts differs between processes.
    number_of = {label: index for index, label in enumerate(sizes)}
    counts = {number_of[k]: d if isinstance(d, int) else UNKNOWN_SIZE for k, d in sizes.items()}
    inputs = [frozenset(number_of[label] for label in term) for term in equation.terms]
    out = frozenset(number_of[label] for label in equation.out)
    path = finder(inputs, out, counts, memory_limit)
    if not retry or _count_multiplications(path, inputs, out, counts) <= FEW_PRODUCTS:
        return path
    random_state = random.getstate()  # the finder leaves it seeded
    other = _finder(THOROUGH)(inputs, out, counts, memory_limit)
    random.setstate(random_state)
    return min(path, other, key=lambda path: _count_multiplications(path, inputs, out, counts))


def _count_multiplications(
    path: Path, inputs: Sequence[frozenset[int]], out: frozenset[int], counts: Mapping[int, int]
) -> int:
    """Return the number of multiplications of a contraction by ``path``."""
    operands = list(inputs)
    total = 0
    for group in path:
        contracted = [operands.pop(i) for i in sorted(group, reverse=True)]
        read = frozenset().union(*contracted)
        total += prod(counts[label] for label in read)
        operands.append(read & out.union(*operands))
    return total


def _pairs(path: Path) -> list[tuple[int, ...]]:
    """Return ``path`` as tuples of integers; raises UsageError E658."""
    try:
        return [tuple(int(i) for i in pair) for pair in path]
    except (TypeError, ValueError) as error:
        raise UsageError(
            "E658",
            f"{path!r} is not a path",
            fix="give pairs of operand numbers, such as [(0, 1), (0, 1)]",
            why="each step of a path is a pair of whole numbers",
        ) from error


def _finder(name: str) -> Finder:
    """Return the finder called ``name``; raises UsageError E658 if there is none."""
    from opt_einsum import paths

    with suppress(KeyError):
        finder: Finder = paths.get_path_fn(name)
        return finder
    if find_spec("cotengra") is not None:
        import_module("cotengra")  # it registers its finders with opt_einsum
        with suppress(KeyError):
            cotengra_finder: Finder = paths.get_path_fn(name)
            return cotengra_finder
    raise UsageError(
        "E658",
        f"opt_einsum has no path algorithm named {name!r}",
        fix="use one of auto, greedy and dp, or another name in the documentation of opt_einsum",
        why="optimize= names an algorithm of opt_einsum, or of cotengra if it is installed",
    )


def check_path(path: Path, count: int) -> None:
    """Raise UsageError E658 unless ``path`` contracts ``count`` operands to one."""
    remaining = count
    for pair in path:
        if len(set(pair)) != 2 or not all(0 <= i < remaining for i in pair):
            raise UsageError(
                "E658",
                f"{pair} does not name two of {remaining} operands",
                why="after each step, the operands left are numbered from 0 on",
                fix=f"choose two different numbers below {remaining}",
            )
        remaining -= 1
    if remaining != 1:
        raise UsageError(
            "E658",
            f"the path leaves {remaining} operands",
            fix=f"add {remaining - 1} pairs to the path",
            why="a path contracts all operands to one",
        )
