"""Two Casts become one if the middle type loses nothing, in range and mantissa."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.cast_optimization import (
    FLOATS,
    INTEGERS,
    cast_optimization,
    holds_every_value,
)

CODES = {
    "float16": 10,
    "float": 1,
    "double": 11,
    "int8": 3,
    "int32": 6,
    "int64": 7,
    "uint8": 2,
    "bool": 9,
}
MERGED = [
    ("float16", "float", "double"),
    ("float16", "double", "float16"),
    ("int8", "int32", "int64"),
    ("int32", "double", "float"),
    ("uint8", "int64", "int8"),
    ("bool", "float", "int32"),
    ("int8", "float16", "float"),
]


@pytest.mark.parametrize(("start", "middle", "end"), MERGED)
def test_merges(start: str, middle: str, end: str) -> None:
    graph = f"g ({start}[N,4] x) => ({end}[N,4] y) {{{{ {{}} y = Identity(b) }}}}"
    before = f"a = Cast<to={CODES[middle]}>(x) b = Cast<to={CODES[end]}>(a)"
    after = f"b = Cast<to={CODES[end]}>(x) y = Identity(b)" if start != end else "y = Identity(x)"
    check_rewrite(
        cast_optimization,
        graph.format(before),
        f"g ({start}[N,4] x) => ({end}[N,4] y) {{ {after} }}",
    )


KEPT = [
    ("float", "float16", "float"),
    ("float", "int32", "float"),
    ("int32", "float", "int32"),
    ("int64", "double", "int64"),
    ("int32", "int8", "int32"),
    ("uint8", "int8", "uint8"),
    ("float", "bool", "float"),
    ("float16", "float", "int8"),
    ("double", "float", "float16"),
]


@pytest.mark.parametrize(("start", "middle", "end"), KEPT)
def test_keeps(start: str, middle: str, end: str) -> None:
    check_unchanged(
        cast_optimization,
        f"g ({start}[4] x) => ({end}[4] y) {{ a = Cast<to={CODES[middle]}>(x) y = Cast<to={CODES[end]}>(a) }}",
    )


@pytest.mark.parametrize(
    ("wide", "narrow"), list(itertools.product((*FLOATS, *INTEGERS), repeat=2))
)
def test_holds_is_a_round_trip_of_the_hardest_values(
    wide: ir.DataType, narrow: ir.DataType
) -> None:
    values = _hardest(narrow)
    with np.errstate(all="ignore"):
        back = values.astype(wide.numpy()).astype(narrow.numpy())
        there = values.astype(wide.numpy())
    exact = np.array_equal(back.astype(object), values.astype(object)) and _same(there, values)
    assert holds_every_value(wide, narrow) == exact


def _hardest(dtype: ir.DataType) -> np.ndarray:
    kind = dtype.numpy()
    if dtype in INTEGERS:
        info = np.iinfo(kind)
        return np.asarray([info.min, info.max, info.max - 1, 1], kind)
    info = ml_dtypes.finfo(kind)
    one = kind.type(1)
    return np.asarray([info.max, info.smallest_subnormal, one + info.eps, -info.max], kind)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return all(_exact(x) == _exact(y) for x, y in zip(a, b, strict=True))


def _exact(x: np.generic) -> object:
    number = x.item() if x.dtype.kind in "biu" else float(x)
    return number if np.isfinite(number) else str(number)


def test_a_cast_like_a_known_type() -> None:
    check_rewrite(
        cast_optimization,
        "g (int64[N] x, float[4] z) => (float[N] y) { y = CastLike(x, z) }",
        "g (int64[N] x, float[4] z) => (float[N] y) { y = Cast<to=1>(x) }",
    )


def test_keeps_a_cast_like_with_its_own_saturation() -> None:
    check_unchanged(
        cast_optimization,
        "g (float[N] x, float[4] z) => (float[N] y) { y = CastLike<saturate=1>(x, z) }",
    )


def test_a_cast_to_its_own_type() -> None:
    check_rewrite(
        cast_optimization,
        "g (float[N] x) => (float[N] y) { c = Cast<to=1>(x) y = Exp(c) }",
        "g (float[N] x) => (float[N] y) { y = Exp(x) }",
    )
