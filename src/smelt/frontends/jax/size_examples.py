"""Numbers for symbolic sizes, of which something said of them is true."""

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
"""Sizes that show how many what is said of one symbol leaves."""

TRIED = range(24, 0, -1)
"""The sizes that are tried for each of several symbols."""

SMALL = 12
"""Products of such numbers, as in ``floordiv(N, 12) <= 12``, are well within ``EVERY``."""

FEW = 4
"""Sizes of which each may get a case."""

SYMBOLS = 3
"""For more symbols, there are too many sizes to try."""

NEGATIVE = "<= -1"
"""How it ends what no size is."""

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
    """``N <= 3`` as its left side, the comparison and its right side."""
    found = _SAID.fullmatch(said)
    assert found is not None
    left, compared, right = found.groups()
    return left, compared, right


def stated(texts: Sequence[str]) -> list[str] | None:
    """``texts``, which are said of sizes, as equalities where they leave one: of those JAX makes
    the most. None if no size is such, as none is negative; with numbers up to ``SMALL`` alone, the
    sizes of which they are true would be among ``EVERY``."""
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


def few_left(said: str, texts: Sequence[str]) -> list[str]:
    """The sizes of the symbol of ``said`` for which ``texts`` are true, as equalities; none if they
    are many, or one, or of several symbols."""
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
    """``N >= M`` and ``N <= M`` as one equality."""
    for text in texts:
        left, compared, right = sides(text)
        other = f"{left} >= {right}"
        if compared == "<=" and left.isidentifier() and other in texts:
            rest = [each for each in texts if each not in (text, other)]
            return _as_equal([f"{left} == {right}", *rest])
    return texts


def examples(structs: Any, texts: Sequence[str]) -> list[Sizes]:
    """Small and larger numbers for the symbols of ``structs`` for which ``texts``, such as
    ``N <= 3``, are true; none if none of those tried are such."""
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
    """``structs`` with numbers for their symbols."""

    def replace(struct: Any) -> Any:
        shape = tuple(_reader(str(dim))(sizes) for dim in struct.shape)
        return compat.struct(shape, struct.dtype, struct.weak_type)

    return jax.tree.map(replace, structs)


def _holder(said: str) -> Callable[[Sizes], bool]:
    """Whether ``said`` is true, as a function of sizes."""
    left, compared, right = sides(said)
    first, second, compare = _reader(left), _reader(right), _COMPARED[compared]
    return lambda sizes: compare(first(sizes), second(sizes))


def _reader(text: str) -> Callable[[Sizes], int]:
    """The dim written as ``text``, as a function of sizes."""
    tree = parse(text)

    def read(sizes: Sizes) -> int:
        apply = Algebra(sizes.__getitem__, int, lambda op, a, b: _ARITHMETIC[op](a, b))
        number = evaluate(tree, apply)
        assert isinstance(number, int)
        return number

    return read
