"""Many small matrices, several in a vector: the numbers, signs and pivots are those of LAPACK."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from one_operator import agreement, source

from smelt import operators
from smelt.native.factor_side_by_side import factor_side_by_side

FLAGS = ("left_side", "lower", "transpose_a", "unit_diagonal")
SHAPES = [(4, 4), (16, 16), (7, 3), (3, 7), (1, 1), (1, 5), (5, 1), (32, 32)]
OUT_OF_RANGE = [("float32", 1e25), ("float32", 1e-30), ("float64", 1e200), ("float64", 1e-200)]


@pytest.fixture(params=["native"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def agrees(compile_host):
    return agreement(compile_host, factor_side_by_side, "smelt.native.side_by_side")


def matrices(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


def reflections(shape: tuple[int, ...], dtype: str) -> tuple[np.ndarray, ...]:
    geqrf = operators.find("smelt", "Geqrf")
    assert geqrf is not None
    return tuple(geqrf.reference((matrices(shape, dtype),), {}))


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky_of_a_batch_that_leaves_a_rest(agrees, lower: int, dtype: str) -> None:
    root = matrices((3, 7, 6, 6), dtype)
    a = root @ root.swapaxes(-1, -2) + np.eye(6, dtype=dtype)
    a[0, 1, 2, 2], a[2, 6, 0, 0] = -1, 0
    (factor,) = agrees("Cholesky", a, lower=lower)
    assert (np.isnan(factor).sum((-1, -2)) == 21).sum() == 2


@pytest.mark.slow  # compiles C
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["LU", "Geqrf"])
def test_factors_of_every_shape(agrees, name: str, dtype: str, shape: tuple[int, int]) -> None:
    agrees(name, matrices((21, *shape), dtype))


def test_pivots_of_zero_equal_and_undefined_numbers(agrees) -> None:
    a = matrices((16, 3, 3), "float64")
    a[0] = [[0, 1, 2], [0, 0, 3], [0, 4, 5]]
    a[1], a[2] = 1, 0
    a[3, 1, 1] = np.nan
    a[4] = np.eye(3)[::-1]
    agrees("LU", a)


@pytest.mark.slow
@pytest.mark.parametrize("flags", list(itertools.product([0, 1], repeat=4)))
def test_triangular_solve(agrees, flags: tuple[int, ...]) -> None:
    a = matrices((9, 5, 5), "float64") + 4 * np.eye(5)
    b = matrices((9, 5, 3) if flags[0] else (9, 3, 5), "float64")
    agrees("TriangularSolve", a, b, **dict(zip(FLAGS, flags, strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "by"), OUT_OF_RANGE)
def test_squares_out_of_range_and_columns_with_nothing_to_reflect(
    compile_host, dtype: str, by: float
) -> None:
    a = matrices((16, 4, 4), dtype)
    plain = compile_host(source("Geqrf", 2, a))
    whole, taus = plain(a)
    scaled, same = plain(a * np.asarray(by, dtype))
    upper = np.triu(np.ones((4, 4), bool))
    tolerance = 2e-5 if dtype == "float32" else 1e-13
    np.testing.assert_allclose(same, taus, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(scaled[:, upper] / by, whole[:, upper], atol=tolerance)
    np.testing.assert_allclose(scaled[:, ~upper], whole[:, ~upper], atol=tolerance)


def test_what_is_triangular_already_needs_no_reflection(agrees) -> None:
    a = matrices((8, 3, 3), "float64")
    a[2], a[3], a[4] = 0, np.triu(a[3]), -np.eye(3)
    packed, taus = agrees("Geqrf", a)
    np.testing.assert_array_equal(packed[2:5], a[2:5])
    assert not taus[2:5].any()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(6, 4), (5, 5), (9, 1), (32, 32)], ids=str)
def test_products_of_reflections(agrees, shape: tuple[int, int]) -> None:
    packed, taus = reflections((10, *shape), "float64")
    agrees("HouseholderProduct", packed, taus)
    agrees("HouseholderProduct", packed, taus[..., :1])
