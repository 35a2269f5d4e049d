"""Find numbers for symbolic sizes that satisfy comparisons such as ``N <= 3``."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax

from smelt.frontends.jax import compat
from smelt.frontends.jax.open_sizes.symbols import Algebra, evaluate, parse, symbols_in

CANDIDATE_SIZES = (*range(1, 257), *(10**power for power in range(3, 10)))
"""The sizes tried for one symbol, to find all solutions of its comparisons."""

SEARCHED_SIZES = range(24, 0, -1)
"""The sizes tried for each of several symbols, largest first."""

SMALL_NUMBER = 12
"""A solvable comparison without a larger number has a solution within ``CANDIDATE_SIZES``.

Solutions may be much larger than the numbers: the least one of ``floordiv(N, 12) >= 12`` is 144.
"""

MOST_CASES = 4
"""The largest number of sizes that each get a case of their own."""

MOST_SYMBOLS = 3
"""With more symbols, there are too many combinations to try."""

IS_NEGATIVE = "<= -1"
"""The end of a comparison that no size satisfies."""

Sizes: TypeAlias = Mapping[str, int]

_ARITHMETIC: Mapping[str, Callable[[int, int], int]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "max": max,
    "min": min,
}
_NAME = re.compile(r"[^\W\d]\w*")
_NUMBER = re.compile(r"\d+")
_COMPARISON = re.compile(r"(.+?) (<=|>=|==|!=) (.+)")
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def sides(comparison: str) -> tuple[str, str, str]:
    """Return ``(left side, relation, right side)`` of a comparison such as ``N <= 3``."""
    match = _COMPARISON.fullmatch(comparison)
    assert match is not None
    left, relation, right = match.groups()
    return left, relation, right


def simplified(texts: Sequence[str]) -> list[str] | None:
    """Return the constraints ``texts`` with an equality for each symbol that has a single solution.

    An equality lets JAX replace the symbol by the number. Comparisons of several symbols are not
    solved. ``N >= M`` and ``N <= M`` are joined to one equality.

    None if a symbol provably has no solution. That is so if a constraint makes its size negative.
    It is also so if no size in ``CANDIDATE_SIZES`` is a solution and its constraints have no number
    above ``SMALL_NUMBER``: a solution would be among the candidates.
    """
    texts = list(texts)
    names = {text: _names(text) for text in texts}
    for name in sorted(set().union(*names.values())):
        texts_of_name = [text for text in texts if names.get(text) == {name}]
        sizes = _solutions(name, texts_of_name)
        if not sizes and any(text.endswith(IS_NEGATIVE) for text in texts_of_name):
            return None
        if not sizes and texts_of_name and _has_small_numbers(texts_of_name):
            return None
        if len(sizes) == 1:
            texts = [
                f"{name} == {sizes[0]}",
                *(text for text in texts if text not in texts_of_name),
            ]
    return _join_bounds(texts)


def _solutions(name: str, texts: Sequence[str]) -> list[int]:
    """Return the ``CANDIDATE_SIZES`` of ``name`` for which all comparisons ``texts`` are true."""
    tests = [_predicate(text) for text in texts]
    return [size for size in CANDIDATE_SIZES if all(test({name: size}) for test in tests)]


def _has_small_numbers(texts: Sequence[str]) -> bool:
    """True if no number in ``texts`` is above ``SMALL_NUMBER``."""
    return all(int(number) <= SMALL_NUMBER for text in texts for number in _NUMBER.findall(text))


def remaining_sizes(comparison: str, texts: Sequence[str]) -> list[str]:
    """Return equalities ``N == 1``, ``N == 2``, ... for the few sizes that satisfy ``texts``.

    N is the one symbol in ``comparison``. Empty if there is one size, more than ``MOST_CASES``, or
    several symbols.
    """
    names = _names(comparison)
    if len(names) != 1:
        return []
    (name,) = names
    sizes = _solutions(name, [text for text in texts if _names(text) == names])
    return [f"{name} == {size}" for size in sizes] if 1 < len(sizes) <= MOST_CASES else []


def _names(text: str) -> set[str]:
    """Return the symbols in ``text``."""
    return {*_NAME.findall(text)} - {"mod", "floordiv", "max", "min"}


def _join_bounds(texts: list[str]) -> list[str]:
    """Return ``texts`` with ``N >= M`` and ``N <= M`` joined to one equality."""
    for text in texts:
        left, relation, right = sides(text)
        lower_bound = f"{left} >= {right}"
        if relation == "<=" and left.isidentifier() and lower_bound in texts:
            other_texts = [other for other in texts if other not in (text, lower_bound)]
            return _join_bounds([f"{left} == {right}", *other_texts])
    return texts


def examples(structs: Any, texts: Sequence[str]) -> list[Sizes]:
    """Return two combinations of numbers for the symbols: one of large numbers, one of small ones.

    They satisfy the comparisons ``texts``. Empty if no tried combination does.
    """
    dims = [dim for leaf in compat.leaves(structs) for dim in leaf.shape]
    # Under the constraint ``N == 1``, JAX replaces N in the dims by 1.
    names = sorted({name for dim in dims for name in symbols_in(dim)}.union(*map(_names, texts)))
    if len(names) > MOST_SYMBOLS:
        return []
    conditions = [_predicate(text) for text in texts]

    def first_solution(numbers_tried: Sequence[int]) -> Iterator[Sizes]:
        """Yield the first combination of ``numbers_tried`` that passes all tests, if any."""
        combinations = itertools.product(numbers_tried, repeat=len(names))
        candidates = (dict(zip(names, numbers, strict=True)) for numbers in combinations)
        passing = (
            sizes for sizes in candidates if all(condition(sizes) for condition in conditions)
        )
        return itertools.islice(passing, 1)

    return [*first_solution(SEARCHED_SIZES), *first_solution(SEARCHED_SIZES[::-1])]


def of_numbers(structs: Any, sizes: Sizes) -> Any:
    """Return ``structs`` with numbers in place of their symbols."""

    def replace(struct: Any) -> Any:
        """Return ``struct`` with numbers in place of its symbols."""
        shape = tuple(_evaluator(str(dim))(sizes) for dim in struct.shape)
        return compat.struct(shape, struct.dtype, struct.weak_type)

    return jax.tree.map(replace, structs)


def _predicate(comparison: str) -> Callable[[Sizes], bool]:
    """Return a function that is True for sizes for which ``comparison`` holds."""
    left, relation, right = sides(comparison)
    first, second, compare = _evaluator(left), _evaluator(right), _COMPARED[relation]
    return lambda sizes: compare(first(sizes), second(sizes))


def _evaluator(text: str) -> Callable[[Sizes], int]:
    """Return a function of sizes that computes the dim written as ``text``."""
    tree = parse(text)

    def read(sizes: Sizes) -> int:
        """Return the number of the dim for ``sizes``."""
        apply = Algebra(sizes.__getitem__, int, lambda op, a, b: _ARITHMETIC[op](a, b))
        number = evaluate(tree, apply)
        assert isinstance(number, int)
        return number

    return read
