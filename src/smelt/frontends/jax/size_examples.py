"""Find numbers for symbolic sizes that satisfy given comparisons."""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import jax

from smelt.frontends.jax import compat
from smelt.frontends.jax.symbols import Algebra, evaluate, parse, symbols_in

EVERY = (*range(1, 257), *(10**power for power in range(3, 10)))
"""The sizes that are tried to count the solutions of comparisons of one symbol."""

TRIED = range(24, 0, -1)
"""The sizes that are tried for each of several symbols, largest first."""

SMALL = 12
"""Products of numbers up to this one, as in ``floordiv(N, 12) <= 12``, lie within ``EVERY``."""

FEW = 4
"""The largest number of sizes that each get a case of their own."""

SYMBOLS = 3
"""With more symbols, there are too many combinations to try."""

NEGATIVE = "<= -1"
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
_SAID = re.compile(r"(.+?) (<=|>=|==|!=) (.+)")
_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def sides(said: str) -> tuple[str, str, str]:
    """Return left side, comparison and right side of ``N <= 3``."""
    found = _SAID.fullmatch(said)
    assert found is not None
    left, compared, right = found.groups()
    return left, compared, right


def stated(texts: Sequence[str]) -> list[str] | None:
    """Return ``texts`` with an equality for each symbol that has a single solution.

    JAX uses equalities best. None if a symbol has no solution: no size is negative, and with
    numbers up to ``SMALL`` every solution would be in ``EVERY``.
    """
    texts = list(texts)
    names = {text: _names(text) for text in texts}
    for name in sorted(set().union(*names.values())):
        of_it = [text for text in texts if names.get(text) == {name}]
        held = [_holder(text) for text in of_it]
        left = [size for size in EVERY if all(holds({name: size}) for holds in held)]
        if not left and any(text.endswith(NEGATIVE) for text in of_it):
            return None
        if not left and of_it and _has_small_numbers(of_it):
            return None
        if len(left) == 1:
            texts = [f"{name} == {left[0]}", *(text for text in texts if text not in of_it)]
    return _as_equal(texts)


def _has_small_numbers(texts: Sequence[str]) -> bool:
    return all(int(number) <= SMALL for text in texts for number in _NUMBER.findall(text))


def remaining_sizes(said: str, texts: Sequence[str]) -> list[str]:
    """Return the sizes of the one symbol in ``said`` that satisfy ``texts``, as equalities.

    Empty if there is one, more than ``FEW``, or several symbols.
    """
    names = _names(said)
    if len(names) != 1:
        return []
    (name,) = names
    held = [_holder(text) for text in texts if _names(text) == names]
    left = [size for size in EVERY if all(holds({name: size}) for holds in held)]
    return [f"{name} == {size}" for size in left] if 1 < len(left) <= FEW else []


def _names(text: str) -> set[str]:
    return {*_NAME.findall(text)} - {"mod", "floordiv", "max", "min"}


def _as_equal(texts: list[str]) -> list[str]:
    """Return ``texts`` with ``N >= M`` and ``N <= M`` joined to one equality."""
    for text in texts:
        left, compared, right = sides(text)
        other = f"{left} >= {right}"
        if compared == "<=" and left.isidentifier() and other in texts:
            rest = [each for each in texts if each not in (text, other)]
            return _as_equal([f"{left} == {right}", *rest])
    return texts


def examples(structs: Any, texts: Sequence[str]) -> list[Sizes]:
    """Return large and small numbers for the symbols of ``structs`` that satisfy ``texts``.

    Empty if no tried combination does.
    """
    dims = [dim for leaf in compat.leaves(structs) for dim in leaf.shape]
    # A text such as ``N == 1`` may have left no N in the dims.
    names = sorted({name for dim in dims for name in symbols_in(dim)}.union(*map(_names, texts)))
    if len(names) > SYMBOLS:
        return []
    held = [_holder(text) for text in texts]

    def found(tried: Sequence[int]) -> Iterator[Sizes]:
        every = itertools.product(tried, repeat=len(names))
        sizes = (dict(zip(names, numbers, strict=True)) for numbers in every)
        return itertools.islice((each for each in sizes if all(h(each) for h in held)), 1)

    return [*found(TRIED), *found(TRIED[::-1])]


def of_numbers(structs: Any, sizes: Sizes) -> Any:
    """Return ``structs`` with numbers in place of their symbols."""

    def replace(struct: Any) -> Any:
        shape = tuple(_reader(str(dim))(sizes) for dim in struct.shape)
        return compat.struct(shape, struct.dtype, struct.weak_type)

    return jax.tree.map(replace, structs)


def _holder(said: str) -> Callable[[Sizes], bool]:
    """Return a function of sizes that tells whether ``said`` is true."""
    left, compared, right = sides(said)
    first, second, compare = _reader(left), _reader(right), _COMPARED[compared]
    return lambda sizes: compare(first(sizes), second(sizes))


def _reader(text: str) -> Callable[[Sizes], int]:
    """Return a function of sizes that computes the dim written as ``text``."""
    tree = parse(text)

    def read(sizes: Sizes) -> int:
        apply = Algebra(sizes.__getitem__, int, lambda op, a, b: _ARITHMETIC[op](a, b))
        number = evaluate(tree, apply)
        assert isinstance(number, int)
        return number

    return read
