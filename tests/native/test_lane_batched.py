"""Many small matrices, several in a vector: the numbers, signs and pivots are those of LAPACK."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from one_operator import agreement, source

from smelt import operators
from smelt.native.rewrite.call_lapack import call_lapack
from smelt.native.rewrite.factor_lane_batched import factor_lane_batched
from smelt.runtime.jit import blas

FLAGS = ("left_side", "lower", "transpose_a", "unit_diagonal")
SHAPES = [(4, 4), (16, 16), (7, 3), (3, 7), (1, 1), (1, 5), (5, 1), (32, 32)]
OUT_OF_RANGE = [("float32", 1e25), ("float32", 1e-30), ("float64", 1e200), ("float64", 1e-200)]


@pytest.fixture(params=["native"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def agrees(compile_host):
    return agreement(compile_host, factor_lane_batched, "smelt.native.lane_batched")


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


def positive(count: int, n: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """Parts of Hermitian matrices, all but one with positive eigenvalues."""
    re, im = matrices((2, count, n, n), "float64")
    root = re + 1j * im
    a = root @ root.conj().swapaxes(-1, -2) + np.eye(n)
    a[1, 2, 2] = -1
    return a.real.astype(dtype), a.imag.astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_complex_cholesky(agrees, dtype: str) -> None:
    factor, _ = agrees("ComplexCholesky", *positive(19, 5, dtype))
    assert (np.isnan(factor).sum((-1, -2)) == 15).sum() == 1


@pytest.mark.parametrize(
    ("flags", "columns"),
    [
        ((1, 1, 0, 0, 0), 5),
        *(
            pytest.param(flags, 1, marks=pytest.mark.slow)
            for flags in itertools.product((0, 1), repeat=5)
        ),
    ],
)
def test_complex_systems(agrees, flags: tuple[int, ...], columns: int) -> None:
    shape = (19, 6, columns) if flags[0] else (19, columns, 6)
    a = [part + 3 * np.eye(6, dtype=np.float32) for part in matrices((2, 19, 6, 6), "float32")]
    given = dict(zip((*FLAGS, "conjugate_a"), flags, strict=True))
    agrees("ComplexTriangularSolve", *a, *matrices((2, *shape), "float32"), **given)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_complex_factors(agrees, dtype: str) -> None:
    re, im = matrices((2, 21, 7, 5), dtype)
    re[3], im[3] = 0, 0
    agrees("ComplexLU", re, im)


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
    b = matrices((9, 5, 6) if flags[0] else (9, 6, 5), "float64")
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


def test_triangular_matrices_need_no_reflection(agrees) -> None:
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


@pytest.fixture
def lapack_agrees(compile_host):
    if blas.table() is None:
        pytest.skip("scipy-openblas32 is not installed")
    return agreement(compile_host, call_lapack, "smelt.native.lane_batched")


@pytest.mark.parametrize("n", [5, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 3, 8))])
def test_eigenvectors_have_the_signs_of_lapack(lapack_agrees, n: int) -> None:
    """In double: of floats, rounding decides how many steps there are, and so some signs."""
    a = matrices((3, 7, n, n), "float64")
    lapack_agrees("Eigh", a + a.swapaxes(-1, -2), lower=1)


KINDS = {
    "rows of many sizes": lambda a: a * 10.0 ** np.linspace(6, -6, a.shape[-2])[:, None],
    "columns of many sizes": lambda a: a * 10.0 ** np.linspace(-9, 6, a.shape[-1]),
    "rank 1": lambda a: a[..., :1] * a[..., :1, :],
    "zeros": np.zeros_like,
    "ones": np.ones_like,
    "blocks": lambda a: a * (np.add.outer(np.arange(a.shape[-2]), np.arange(a.shape[-1])) % 2),
    "a diagonal": lambda a: a * np.eye(*a.shape[-2:]),
    "large": lambda a: a * 1e30,
    "small": lambda a: a * 1e-30,
    "integers": np.round,
}


@pytest.mark.parametrize("n", [4, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 7))])
def test_complex_eigenvectors_are_those_of_lapack(lapack_agrees, n: int) -> None:
    """Only the lower triangle is read, and of the diagonal the real part."""
    re, im = matrices((2, 19, n, n), "float64")
    re[5], im[5, 0, 1], im[7, 1, 0] = np.diag(np.arange(n)), np.nan, np.nan
    vectors, *_ = lapack_agrees("ComplexEigh", re, im, lower=1)
    assert np.isnan(vectors).all((-1, -2)).tolist() == [i == 7 for i in range(19)]


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 16, 25])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_hermitian_matrices_of_every_kind(compile_host, dtype: str, n: int) -> None:
    re, im = (
        np.concatenate([kind(part) for kind in KINDS.values()]).astype(dtype)
        for part in matrices((2, 3, n, n), "float64")
    )
    x, y, values = compile_host(source("ComplexEigh", 3, re, im, lower=1))(re, im)
    below = np.tril(np.float64(re), -1) + 1j * np.tril(np.float64(im), -1)
    whole = below + below.conj().swapaxes(-1, -2) + np.eye(n) * re
    scale = np.abs(whole).max((-1, -2), keepdims=True) + 1e-300
    vectors, near = np.float64(x) + 1j * y, np.finfo(dtype).eps * 12 * n
    product = (whole / scale) @ vectors - vectors * (values[:, None, :] / scale)
    assert np.abs(product).max() < near
    assert np.abs(vectors.conj().swapaxes(-1, -2) @ vectors - np.eye(n)).max() < near
    assert (np.diff(values) >= 0).all()


def decompose(compile_host, a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values, after it is seen that vectors are what they are defined to be."""
    vectors, values = compile_host(source("Eigh", 2, a, lower=1))(a)
    whole = np.tril(a) + np.tril(a, -1).swapaxes(-1, -2)
    known = np.isfinite(np.tril(a)).all((-1, -2))
    size = np.abs(np.tril(a)).max((-1, -2), keepdims=True) + 1e-300
    near = (1e-5 if a.dtype == np.float32 else 1e-13) * a.shape[-1]
    product = (whole / size) @ vectors - vectors * (values[..., None, :] / size)
    assert np.abs(product[known]).max() < near
    turned = vectors.swapaxes(-1, -2) @ vectors
    assert np.abs(turned - np.eye(a.shape[-1]))[known].max() < near
    assert (np.diff(values)[known] >= 0).all()
    return vectors, values


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 16, 25])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_eigenvectors_are_what_they_are_defined_to_be(compile_host, n: int, dtype: str) -> None:
    decompose(compile_host, matrices((21, n, n), dtype))


@pytest.mark.slow
def test_symmetric_matrices_of_a_kind(compile_host) -> None:
    a = np.stack([np.diag([3.0, 1, 2]), np.eye(3), np.zeros((3, 3)), np.ones((3, 3))] * 3)
    a[5] = [[2, 9, 9], [1, 2, 9], [0, 1, 2]]  # of which the upper triangle is not read
    a[7], a[11] = 1e200, 1e-200
    a[8, 2, 0], a[9, 0, 2] = np.nan, np.nan
    a[9, 2, 0] = 1
    with np.errstate(all="ignore"):
        vectors, values = decompose(compile_host, a)
    for found in (vectors.reshape(12, 9), values):
        assert np.isnan(found).all(-1).tolist() == [i == 8 for i in range(12)]


@pytest.mark.parametrize("full", [0, 1])
@pytest.mark.parametrize(
    "shape",
    [
        (4, 4),
        *(
            pytest.param(shape, marks=pytest.mark.slow)
            for shape in [(6, 4), (4, 6), (8, 3), (3, 8), (1, 1), (1, 4), (3, 1), (7, 7), (2, 2)]
        ),
    ],
    ids=str,
)
def test_singular_vectors_have_the_signs_of_lapack(
    lapack_agrees, shape: tuple[int, int], full: int
) -> None:
    """In double, as eigenvectors; squares, long and very long ones come by ways of their own."""
    lapack_agrees("SVD", matrices((9, *shape), "float64"), full_matrices=full)


def unitary(vectors: np.ndarray) -> np.ndarray:
    """How far each matrix is from one."""
    product = np.float64(vectors.swapaxes(-1, -2)) @ np.float64(vectors)
    return np.abs(product - np.eye(vectors.shape[-1])).max((-1, -2))


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(8, 8), (25, 25), (20, 12), (5, 40)], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_singular_vectors_of_every_kind(compile_host, dtype: str, shape: tuple[int, int]) -> None:
    """All kinds side by side: no lane disturbs another."""
    drawn = matrices((3, *shape), "float64")
    a = np.concatenate([kind(drawn) for kind in KINDS.values()]).astype(dtype)
    values, left, right = compile_host(source("SVD", 3, a, full_matrices=1))(a)
    scale, count = np.abs(np.float64(a)).max((-1, -2)) + 1e-300, min(shape)
    product = (left[..., :count] * (values / scale[:, None])[:, None, :]) @ right[:, :count]
    near = np.finfo(dtype).eps * 8 * max(shape)
    assert np.abs(product - a / scale[:, None, None]).max() < near
    assert max(unitary(left).max(), unitary(right.swapaxes(-1, -2)).max()) < near
    assert (values >= 0).all()
    assert (np.diff(values) <= 0).all()


@pytest.mark.parametrize(
    ("name", "outputs", "attributes"),
    [
        ("SVD", 3, {"full_matrices": 0}),
        *(
            pytest.param(*each, marks=pytest.mark.slow)
            for each in [
                ("SingularValues", 1, {}),
                ("Eigh", 2, {"lower": 1}),
                ("Geqrf", 2, {}),
                ("LU", 3, {}),
                ("Cholesky", 1, {"lower": 1}),
            ]
        ),
    ],
)
def test_a_matrix_has_the_same_bits_among_any_others(
    compile_host, name: str, outputs: int, attributes: dict[str, int]
) -> None:
    a = matrices((16, 5, 5), "float32")
    a[4] = a[4] @ a[4].T
    a[2], a[3], a[6], a[9] = np.nan, 0, a[6] * 1e25, a[9] * 1e-30
    call = compile_host(source(name, outputs, a, **attributes))
    with np.errstate(all="ignore"):
        among, copies = call(a), call(np.repeat(a[4:5], 16, 0))
    for mixed, alike in zip(among, copies, strict=True):
        np.testing.assert_array_equal(alike, np.repeat(mixed[4:5], 16, 0))


def test_the_upper_triangle_and_larger_matrices_are_left_to_lapack(compile_host) -> None:
    for shape, lower in (((16, 4, 4), 0), ((16, 26, 26), 1), ((2, 4, 4), 1)):
        text = source("Eigh", 2, np.zeros(shape), lower=lower)
        program = compile_host(text).opened().compiled.program.copy()
        call_lapack(program)
        assert [step.op for step in program.instructions] == ["smelt.native::Eigh"]


@pytest.mark.parametrize(
    "shape",
    [shape if shape == (3, 7) else pytest.param(shape, marks=pytest.mark.slow) for shape in SHAPES],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
def test_singular_values(lapack_agrees, shape: tuple[int, int], dtype: str) -> None:
    lapack_agrees("SingularValues", matrices((21, *shape), dtype))


@pytest.mark.slow
def test_singular_values_of_a_kind(lapack_agrees) -> None:
    a = np.stack([np.diag([3.0, -1, 2]), np.eye(3), np.zeros((3, 3)), np.ones((3, 3))] * 3)
    a[5] = [[1, 2, 3], [2, 4, 6], [-1, -2, -3]]
    a[6] *= 1e200
    a[7] *= 1e-200
    a[8, 2, 0], a[9, 0, 2] = np.nan, np.inf
    scale = np.ones(12)
    scale[7] = 1e-200
    (values,) = lapack_agrees("SingularValues", a)
    np.testing.assert_allclose((values / scale[:, None])[7], [3, 0, 0], atol=1e-13)
    assert np.isnan(values).all(-1).tolist() == [i in (8, 9) for i in range(12)]
