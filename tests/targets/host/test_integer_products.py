"""Products of integers by NumPy: sums are exact, and wrap around as the type does."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text


def product(kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    (rows, terms), columns = a.shape, b.shape[1]
    graph = (
        f"g ({kind}[{rows},{terms}] a, {kind}[{terms},{columns}] b) => (y) {{ y = MatMul(a, b) }}"
    )
    model = text.parse(graph, 23)
    (y,) = smelt.compile(model, target="host", engine="numpy")(a, b)
    return np.asarray(y)


LARGEST = {
    "bytes": 127,
    "sums beyond float32": 2**20,
    "sums beyond int32": 2**24,
    "sums beyond double": 2**31 - 1,
}


@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("largest", LARGEST.values(), ids=LARGEST)
def test_sums_are_exact_or_wrap_around(kind: str, largest: int) -> None:
    rng = np.random.default_rng(largest)
    a = rng.integers(-largest, largest, (3, 40), endpoint=True).astype(kind)
    b = rng.integers(-largest, largest, (40, 5), endpoint=True).astype(kind)
    wanted = (a.astype(object) @ b.astype(object)) % 2**64
    wraps = np.array(wanted, np.uint64).astype(np.int64).astype(kind)
    np.testing.assert_array_equal(product(kind, a, b), wraps)


def test_the_smallest_number_has_no_opposite() -> None:
    a = np.full((2, 2), -(2**63), np.int64)
    b = np.array([[1, 0], [0, 2]], np.int64)
    np.testing.assert_array_equal(product("int64", a, b), a @ b)


@pytest.mark.parametrize("shape", [(0, 3, 2), (2, 0, 3), (2, 3, 0)])
def test_empty_products(shape: tuple[int, int, int]) -> None:
    rows, terms, columns = shape
    a, b = np.ones((rows, terms), np.int32), np.ones((terms, columns), np.int32)
    np.testing.assert_array_equal(product("int32", a, b), a @ b)


@pytest.mark.parametrize("rows", [0, 1, 9])
@pytest.mark.parametrize("columns", [0, 1, 20])
def test_bytes_by_bytes_of_any_size(rows: int, columns: int, compile_host) -> None:
    """The compiled program packs the right side in each run; its sums of bytes never saturate."""
    artifact = compile_host("g (int8[M,K] a, int8[K,N] b) => (y) { y = MatMulInteger(a, b) }")
    rng = np.random.default_rng(rows)
    for terms in (0, 1, 34):
        a, b = (
            rng.integers(-128, 128, shape).astype(np.int8)
            for shape in ((rows, terms), (terms, columns))
        )
        np.testing.assert_array_equal(artifact(a, b)[0], a.astype(np.int32) @ b.astype(np.int32))
