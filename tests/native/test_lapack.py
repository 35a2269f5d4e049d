"""Decompositions of the native engine are those of NumPy's, matrix by matrix."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from one_operator import agreement, source

import smelt
from smelt import operators
from smelt.ir import text
from smelt.native.kernels.lapack import NAMES
from smelt.native.rewrite.call_lapack import call_lapack
from smelt.runtime.jit import blas

pytestmark = pytest.mark.skipif(blas.table() is None, reason="scipy-openblas32 is not installed")

TALL, WIDE, SQUARE = (3, 6, 4), (2, 4, 6), (2, 2, 5, 5)


@pytest.fixture(params=["native"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def matrices(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.fixture
def agrees(compile_host):
    return agreement(compile_host, call_lapack, "smelt.native")


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cholesky_and_a_matrix_that_has_none(agrees, lower: int, dtype: str) -> None:
    root = matrices(SQUARE, dtype)
    a = root @ root.swapaxes(-1, -2) + np.eye(5, dtype=dtype)
    a[1, 0, 2, 2] = -1
    (factor,) = agrees("Cholesky", a, lower=lower)
    assert np.isnan(factor[1, 0]).sum() == 15


@pytest.mark.parametrize("order", [48, pytest.param(57, marks=pytest.mark.slow)])
@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_large_matrices_are_factored_by_blocks(agrees, lower: int, dtype: str, order: int) -> None:
    """Of one triangle: the other one is not read. The second matrix has no factor."""
    root = matrices((3, order, order), dtype)
    a = root @ root.swapaxes(-1, -2) / order + np.eye(order, dtype=dtype)
    a[1, 40, 40] = -1
    a[2][np.triu_indices(order, 1) if lower else np.tril_indices(order, -1)] = np.nan
    (factor,) = agrees("Cholesky", a, lower=lower)
    assert np.isnan(factor[1]).sum() == order * (order + 1) // 2
    assert np.isfinite(factor[2]).all()


FLAGS = ("left_side", "lower", "transpose_a", "unit_diagonal")


@pytest.mark.slow  # compiles C
@pytest.mark.parametrize("flags", list(itertools.product([0, 1], repeat=4)))
def test_triangular_solve(agrees, flags: tuple[int, ...]) -> None:
    a = matrices((2, 5, 5), "float64") + 4 * np.eye(5)
    b = matrices((2, 5, 3) if flags[0] else (2, 3, 5), "float64")
    agrees("TriangularSolve", a, b, **dict(zip(FLAGS, flags, strict=True)))


@pytest.mark.parametrize("flags", [(1, 1, 0, 1), (1, 0, 1, 0), (1, 0, 0, 0)])
def test_large_systems_are_solved_by_halves(agrees, flags: tuple[int, ...]) -> None:
    a = matrices((2, 41, 41), "float64") / 41 + 2 * np.eye(41)
    agrees(
        "TriangularSolve",
        a,
        matrices((2, 41, 19), "float64"),
        **dict(zip(FLAGS, flags, strict=True)),
    )


def test_a_zero_on_the_diagonal_divides(agrees) -> None:
    flags = dict(zip(FLAGS, (1, 1, 0, 0), strict=True))
    (x,) = agrees("TriangularSolve", np.diag([2.0, 0.0]), np.ones((2, 1)), **flags)
    np.testing.assert_array_equal(x, [[0.5], [np.inf]])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE, (1, 1), (1, 3), (3, 1)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["LU", "Geqrf", "SingularValues"])
def test_factors_of_every_shape(agrees, name: str, dtype: str, shape: tuple[int, ...]) -> None:
    agrees(name, matrices(shape, dtype))


def test_a_zero_pivot_leaves_its_column(agrees) -> None:
    agrees("LU", np.array([[0.0, 1, 2], [0, 0, 3], [0, 4, 5]]))


@pytest.mark.slow
@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize("shape", [TALL, WIDE, SQUARE, (1, 3)], ids=str)
def test_singular_vectors_have_the_same_signs(agrees, shape: tuple[int, ...], full: int) -> None:
    agrees("SVD", matrices(shape, "float64"), full_matrices=full)


@pytest.mark.parametrize("lower", [0, 1])
def test_eigh_reads_one_triangle(agrees, lower: int) -> None:
    a = matrices((3, 6, 6), "float64")
    a[1, 0, 5] = np.nan
    vectors, values = agrees("Eigh", a, lower=lower)
    assert np.isnan(values[1]).all() != bool(lower)
    assert np.isnan(vectors[1]).all() != bool(lower)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["SVD", "SingularValues", "Eig"])
def test_non_finite_matrices_give_nan(agrees, name: str) -> None:
    a = matrices((3, 4, 4), "float64")
    a[1, 2, 0] = np.inf
    results = agrees(name, a, **({"full_matrices": 0} if name == "SVD" else {}))
    assert all(np.isnan(result[1]).all() and np.isfinite(result[0]).all() for result in results)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigenvectors_in_pairs(agrees, dtype: str) -> None:
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 2]])
    agrees("Eig", np.stack([turn, np.diag([3, 1, 2])]).astype(dtype))


@pytest.mark.slow  # compiles C
@pytest.mark.parametrize("name", ["Eig", "ComplexEig"])
@pytest.mark.parametrize("kept", [("y4", "y5"), ("y3", "y0"), ("y0", "y1")])
def test_only_vectors_that_are_read_are_computed(name: str, kept: tuple[str, ...]) -> None:
    given = [matrices((2, 6, 6), "float64") + i for i in range(1 + (name == "ComplexEig"))]
    every = source(name, 6, *given)
    some = every.replace("(y0, y1, y2, y3, y4, y5)", f"({', '.join(kept)})", 1)
    expected, found = (
        smelt.compile(text.parse(model), target="host", engine="native")(*given)
        for model in (every, some)
    )
    for output, result in zip(kept, found, strict=True):
        np.testing.assert_allclose(result, expected[int(output[1])], atol=1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigenvectors_up_to_their_signs(compile_host, dtype: str) -> None:
    """Which the largest elements decide, and so the rounding of the LAPACK at hand."""
    a = matrices((2, 6, 6), dtype)
    tolerance = 1e-4 if dtype == "float32" else 1e-10
    parts = compile_host(source("Eig", 6, a))(a)
    values, left, right = (re + 1j * im for re, im in zip(parts[::2], parts[1::2], strict=True))
    wanted = np.linalg.eigvals(a)
    np.testing.assert_allclose(np.sort_complex(values), np.sort_complex(wanted), atol=tolerance)
    np.testing.assert_allclose(a @ right, right * values[:, None, :], atol=tolerance)
    before = left.conj().swapaxes(-1, -2)
    np.testing.assert_allclose(before @ a, values[:, :, None] * before, atol=tolerance)
    for vectors in (left, right):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=-2), 1, atol=tolerance)


@pytest.mark.slow
@pytest.mark.parametrize("shape", [TALL, SQUARE], ids=str)
def test_products_of_reflections(agrees, shape: tuple[int, ...]) -> None:
    packed, taus = operators.find("smelt", "Geqrf").reference((matrices(shape, "float64"),), {})
    agrees("HouseholderProduct", packed, taus)
    agrees("HouseholderProduct", packed, taus[..., :2])


def test_large_ones_need_more_than_a_block(agrees) -> None:
    agrees("LU", matrices((70, 70), "float64"))
    agrees("SVD", matrices((70, 65), "float64"), full_matrices=0)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)], ids=str)
def test_empty_matrices_are_left_to_numpy(compile_host, shape: tuple[int, ...]) -> None:
    a = np.zeros(shape)
    artifact = compile_host(source("LU", 3, a))
    expected = operators.find("smelt", "LU").reference((a,), {})
    for result, wanted in zip(artifact(a), expected, strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_the_names_are_operators() -> None:
    assert all(operators.find("smelt", name) is not None for name in NAMES)


@pytest.mark.parametrize(
    "shape", [(2, 3, 3), *(pytest.param(s, marks=pytest.mark.slow) for s in (TALL, WIDE, (1, 1)))]
)
@pytest.mark.parametrize("full", [0, 1])
def test_complex_singular_vectors(agrees, shape: tuple[int, ...], full: int) -> None:
    re, im = matrices((2, *shape), "float64")
    agrees("ComplexSVD", re, im, full_matrices=full)
    agrees("ComplexSingularValues", re, im)


@pytest.mark.parametrize(
    "shape", [SQUARE, *(pytest.param(s, marks=pytest.mark.slow) for s in (TALL, WIDE, (70, 70)))]
)
def test_complex_factors(agrees, shape: tuple[int, ...]) -> None:
    agrees("ComplexLU", *matrices((2, *shape), "float64"))


@pytest.mark.parametrize(
    "flags",
    [
        (0, 1, 1, 1, 0),
        *(pytest.param((1, i, j, k, 0), marks=pytest.mark.slow) for i, j, k in np.ndindex(2, 2, 2)),
    ],
)
def test_complex_systems(agrees, flags: tuple[int, ...]) -> None:
    names = ("left_side", "lower", "transpose_a", "conjugate_a", "unit_diagonal")
    a, b = matrices((2, 2, 5, 5), "float64"), matrices((2, 2, 5, 5), "float64") + 1
    given = dict(zip(names, flags, strict=True))
    agrees("ComplexTriangularSolve", *(a + 3 * np.eye(5)), *b, **given)


def test_complex_cholesky(agrees) -> None:
    re, im = matrices((2, 3, 5, 5), "float64")
    root = re + 1j * im
    a = root @ root.conj().swapaxes(-1, -2) + np.eye(5)
    a[1, 2, 2] = -1
    factor, _ = agrees("ComplexCholesky", a.real.copy(), a.imag.copy())
    assert np.isnan(factor).sum((-1, -2)).tolist() == [0, 15, 0]


@pytest.mark.parametrize("lower", [0, 1])
def test_complex_eigenvectors(agrees, lower: int) -> None:
    """Of one triangle; a matrix of which it is not finite has none."""
    re, im = matrices((2, 3, 5, 5), "float64")
    im[0, 0, 4] = re[0, 4, 0] = np.nan
    vectors, *_ = agrees("ComplexEigh", re, im, lower=lower)
    assert np.isnan(vectors[0]).all()


@pytest.mark.slow  # compiles C
@pytest.mark.parametrize("name", ["ComplexSchur", "ComplexEig"])
def test_complex_forms_and_eigenvalues(agrees, name: str) -> None:
    """Two matrices, and one that is not finite."""
    re, im = matrices((2, 3, 5, 5), "float64")
    re[1, 2, 0] = np.inf
    found = agrees(name, re, im)
    assert all(np.isnan(each[1]).all() and np.isfinite(each[[0, 2]]).all() for each in found)


def test_the_real_form_of_schur(compile_host) -> None:
    """A block of a pair may be turned by a right angle, which the last bits decide."""
    a = matrices((3, 5, 5), "float64")
    a[1, 2, 0] = np.inf
    artifact = compile_host(source("Schur", 2, a))
    form, vectors = artifact(a)
    assert artifact.opened().compiled.why == ""
    assert np.isnan([form[1], vectors[1]]).all()
    form, vectors, a = form[[0, 2]], vectors[[0, 2]], a[[0, 2]]
    turned = vectors.swapaxes(-1, -2)
    np.testing.assert_allclose(vectors @ form @ turned, a, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(turned @ vectors, [np.eye(5)] * 2, atol=1e-12)
    np.testing.assert_array_equal(np.tril(form, -2), np.zeros((2, 5, 5)))
