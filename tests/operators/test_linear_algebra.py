"""``smelt.Cholesky`` and ``smelt.TriangularSolve``: their NumPy references and types."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.operators.cholesky import OPERATOR as CHOLESKY
from smelt.operators.triangular_solve import OPERATOR as SOLVE

DTYPES = (np.float32, np.float64)


def positive_definite(batch: tuple[int, ...], n: int, dtype: type) -> np.ndarray:
    factor = np.random.default_rng(n).standard_normal((*batch, n, n))
    return (factor @ factor.swapaxes(-1, -2) + n * np.eye(n)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [(), (3,), (2, 0), (2, 2)])
@pytest.mark.parametrize("n", [0, 1, 2, 7])
@pytest.mark.parametrize("lower", [0, 1])
def test_the_factor_multiplies_back(
    dtype: type, batch: tuple[int, ...], n: int, lower: int
) -> None:
    a = positive_definite(batch, n, dtype)
    (factor,) = CHOLESKY.reference((a,), {"lower": lower})
    assert factor.dtype == dtype
    assert factor.shape == a.shape
    np.testing.assert_array_equal(factor, np.tril(factor) if lower else np.triu(factor))
    transposed = factor.swapaxes(-1, -2)
    product = factor @ transposed if lower else transposed @ factor
    np.testing.assert_allclose(product, a, rtol=1e-4 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("lower", [0, 1])
def test_only_one_triangle_is_read(lower: int) -> None:
    a = positive_definite((), 4, np.float64)
    spoilt = np.where(np.tri(4, dtype=bool) if lower else np.tri(4, dtype=bool).T, a, np.nan)
    expected = CHOLESKY.reference((a,), {"lower": lower})
    np.testing.assert_array_equal(CHOLESKY.reference((spoilt,), {"lower": lower}), expected)


def test_a_matrix_that_is_not_positive_definite_is_nan_alone_in_its_batch() -> None:
    good, bad = np.eye(3), np.diag([1.0, -1.0, 1.0])
    (factor,) = CHOLESKY.reference((np.stack([bad, good]),), {"lower": 1})
    np.testing.assert_array_equal(factor[1], good)
    np.testing.assert_array_equal(np.isnan(factor[0]), np.tri(3, dtype=bool))


FLAGS = list(itertools.product([0, 1], repeat=4))


@pytest.mark.parametrize(("left_side", "lower", "transpose_a", "unit_diagonal"), FLAGS)
@pytest.mark.parametrize("batch", [(), (2, 3)])
def test_solutions_multiply_back(
    left_side: int, lower: int, transpose_a: int, unit_diagonal: int, batch: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(0)
    m, n = 4, 3
    a = rng.standard_normal((*batch, m, m)) + 3 * np.eye(m)
    b = rng.standard_normal((*batch, m, n) if left_side else (*batch, n, m))
    attributes = {
        "left_side": left_side,
        "lower": lower,
        "transpose_a": transpose_a,
        "unit_diagonal": unit_diagonal,
    }
    (x,) = SOLVE.reference((a, b), attributes)
    matrix = np.tril(a) if lower else np.triu(a)
    if unit_diagonal:
        matrix = matrix - matrix * np.eye(m) + np.eye(m)
    if transpose_a:
        matrix = matrix.swapaxes(-1, -2)
    np.testing.assert_allclose(matrix @ x if left_side else x @ matrix, b, atol=1e-12)


def test_a_zero_on_the_diagonal_divides() -> None:
    flags = {"left_side": 1, "lower": 1, "transpose_a": 0, "unit_diagonal": 0}
    (x,) = SOLVE.reference((np.diag([2.0, 0.0]), np.array([[1.0], [1.0]])), flags)
    np.testing.assert_array_equal(x, [[0.5], [np.inf]])


@pytest.mark.parametrize("size", [0, 1])
def test_empty_and_single_systems(size: int) -> None:
    flags = {"left_side": 1, "lower": 0, "transpose_a": 0, "unit_diagonal": 0}
    (x,) = SOLVE.reference((2 * np.eye(size), np.ones((size, 2))), flags)
    np.testing.assert_array_equal(x, np.full((size, 2), 0.5))


def test_types_keep_symbolic_dims() -> None:
    model = text.parse(
        "g (double[B,N,N] a, double[B,N,K] b) => (l, x) {"
        " l = smelt.Cholesky(a) x = smelt.TriangularSolve(l, b) }"
    )
    ShapeInference(model).infer_model()
    left, solution = model.graph.outputs
    assert (left.dtype, str(left.shape)) == (ir.DataType.DOUBLE, "[B,N,N]")
    assert (solution.dtype, str(solution.shape)) == (ir.DataType.DOUBLE, "[B,N,K]")


WRONG = {
    "not square": "g (float[2,3] a) => (y) { y = smelt.Cholesky(a) }",
    "a vector": "g (float[3] a) => (y) { y = smelt.Cholesky(a) }",
    "integers": "g (int32[3,3] a) => (y) { y = smelt.Cholesky(a) }",
    "sizes": "g (float[3,3] a, float[2,1] b) => (y) { y = smelt.TriangularSolve(a, b) }",
    "ranks": "g (float[3,3] a, float[3] b) => (y) { y = smelt.TriangularSolve(a, b) }",
    "types": "g (float[3,3] a, double[3,1] b) => (y) { y = smelt.TriangularSolve(a, b) }",
}


@pytest.mark.parametrize("graph", WRONG.values(), ids=WRONG.keys())
def test_refuses_what_cannot_be(graph: str) -> None:
    node = next(iter(text.parse(graph).graph))
    operator = CHOLESKY if node.op_type == "Cholesky" else SOLVE
    with pytest.raises(ValueError, match=r"takes|differ|do not fit"):
        operator.infer(tuple(node.inputs), operator.attributes_of(node))
