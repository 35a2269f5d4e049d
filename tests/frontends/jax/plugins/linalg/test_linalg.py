"""Every real function of ``jax.numpy.linalg`` and ``jax.scipy.linalg``, in ONNX and on the host."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import jax.scipy.linalg as sl
import numpy as np
import pytest
from jax import lax
from sampling import sampled

import smelt
from smelt.runtime.runner import open_runner

RNG = np.random.default_rng(0)
SQUARE = RNG.normal(size=(2, 4, 4)) + 2 * np.eye(4)
TALL = RNG.normal(size=(2, 5, 3))
WIDE = TALL.swapaxes(-1, -2).copy()
POSITIVE = SQUARE @ SQUARE.swapaxes(-1, -2) + np.eye(4)
RIGHT = RNG.normal(size=(2, 4, 2))
RIGHT5 = TALL[:, ::-1, :2].copy()
VECTOR = RNG.normal(size=6)

DETERMINED = {
    "cholesky": (jnp.linalg.cholesky, POSITIVE),
    "cholesky_upper": (lambda a: jnp.linalg.cholesky(a, upper=True), POSITIVE),
    "cond": (jnp.linalg.cond, SQUARE),
    "cross": (lambda a: jnp.linalg.cross(a[:, :3], a[:, 1:4]), SQUARE[0]),
    "det": (jnp.linalg.det, SQUARE),
    "eigvalsh": (jnp.linalg.eigvalsh, POSITIVE),
    "inv": (jnp.linalg.inv, SQUARE),
    "lstsq": (lambda a, b: jnp.linalg.lstsq(a, b)[0], TALL[0], VECTOR[:5]),
    "lstsq_wide": (lambda a, b: jnp.linalg.lstsq(a, b)[0], WIDE[0], VECTOR[:3]),
    "matrix_norm": (lambda a: jnp.linalg.matrix_norm(a, ord="nuc"), TALL),
    "matrix_power": (lambda a: jnp.linalg.matrix_power(a, -3), SQUARE),
    "matrix_rank": (jnp.linalg.matrix_rank, np.ones((3, 4))),
    "norm_2": (lambda a: jnp.linalg.norm(a, ord=2, axis=(-2, -1)), TALL),
    "norm_fro": (lambda a: jnp.linalg.norm(a, axis=(-2, -1)), TALL),
    "pinv": (jnp.linalg.pinv, TALL),
    "pinv_wide": (jnp.linalg.pinv, WIDE),
    "pinv_hermitian": (lambda a: jnp.linalg.pinv(a, hermitian=True), POSITIVE),
    "qr": (jnp.linalg.qr, TALL),
    "qr_complete": (lambda a: jnp.linalg.qr(a, mode="complete"), TALL),
    "qr_r": (lambda a: jnp.linalg.qr(a, mode="r"), TALL),
    **{
        f"ormqr, left={left}, transpose={transpose}": (
            partial(lax.linalg.ormqr, left=left, transpose=transpose),
            *(TALL, TALL[:, :3, 0], RIGHT5 if left else RIGHT5.swapaxes(-1, -2).copy()),
        )
        for left in (True, False)
        for transpose in (True, False)
    },
    "qr_raw": (lambda a: jnp.linalg.qr(a, mode="raw"), TALL),
    "qr_wide": (jnp.linalg.qr, WIDE),
    "slogdet": (jnp.linalg.slogdet, SQUARE),
    "slogdet_qr": (lambda a: jnp.linalg.slogdet(a, method="qr"), SQUARE),
    "solve": (jnp.linalg.solve, SQUARE, RIGHT),
    "svdvals": (jnp.linalg.svdvals, WIDE),
    "tensorinv": (lambda a: jnp.linalg.tensorinv(a.reshape(2, 2, 4), 2), SQUARE[0]),
    "tensorsolve": (
        lambda a, b: jnp.linalg.tensorsolve(a.reshape(2, 2, 4), b.reshape(2, 2)),
        SQUARE[0],
        SQUARE[1, 0],
    ),
    "scipy_cho_solve": (lambda a, b: sl.cho_solve(sl.cho_factor(a), b), POSITIVE[0], RIGHT[0]),
    "scipy_det": (sl.det, SQUARE),
    "scipy_expm": (sl.expm, SQUARE[0] / 3),
    "scipy_expm_frechet": (lambda a: sl.expm_frechet(a, a), SQUARE[0] / 3),
    "scipy_inv": (sl.inv, SQUARE[0]),
    "scipy_lu": (sl.lu, SQUARE[0]),
    "scipy_lu_wide": (sl.lu, WIDE[0]),
    "scipy_lu_factor": (sl.lu_factor, TALL),
    "scipy_lu_solve": (lambda a, b: sl.lu_solve(sl.lu_factor(a), b, trans=1), SQUARE[0], RIGHT[0]),
    "scipy_polar": (sl.polar, SQUARE[0]),
    "scipy_polar_svd": (lambda a: sl.polar(a, method="svd"), SQUARE[0]),
    "scipy_qr_pivoting": (lambda a: sl.qr(a, pivoting=True), SQUARE[0]),
    "scipy_qr_pivoting_economic": (lambda a: sl.qr(a, mode="economic", pivoting=True), TALL[0]),
    "scipy_qr_multiply": (sl.qr_multiply, TALL[0], VECTOR[:5]),
    "scipy_solve_pos": (lambda a, b: sl.solve(a, b, assume_a="pos"), POSITIVE[0], RIGHT[0]),
    "scipy_solve_triangular": (
        lambda a, b: sl.solve_triangular(a, b, lower=True, trans=1),
        SQUARE[0],
        RIGHT[0],
    ),
    "scipy_svd_values": (lambda a: sl.svd(a, compute_uv=False), TALL[0]),
    "scipy_eigh_tridiagonal": (lambda d: sl.eigh_tridiagonal(d, d[1:], eigvals_only=True), VECTOR),
    "tridiagonal_solve": (
        lambda d, b: lax.linalg.tridiagonal_solve(d + 3, d, d - 1, b),
        VECTOR,
        RNG.normal(size=(6, 2)),
    ),
    "symmetric_product": (
        lambda a, c: lax.linalg.symmetric_product(
            a, c, alpha=2.0, beta=0.5, symmetrize_output=True
        ),
        TALL[0],
        np.eye(5),
    ),
}
SPEC = {"f32": (np.float32, 2e-3, 2e-4), "f64": (np.float64, 1e-9, 1e-11)}


def specs(arrays: list[np.ndarray], dtype: str) -> list[str]:
    return [f"{dtype}[{','.join(map(str, array.shape))}]" for array in arrays]


@pytest.mark.parametrize("name", sampled(DETERMINED, 2))
def test_plain_onnx_agrees_with_jax(check, name):
    fn, *arrays = DETERMINED[name]
    check(fn, *specs(arrays, "f32"), inputs=[arrays], rtol=2e-3, atol=2e-4, compiled=True)


@pytest.mark.parametrize("name", ["inv", "qr_complete", "slogdet", "pinv", "eigvalsh", "scipy_lu"])
def test_doubles(check, name):
    fn, *arrays = DETERMINED[name]
    check(
        fn, *specs(arrays, "f64"), inputs=[arrays], rtol=1e-9, atol=1e-11, x64=True, compiled=True
    )


@pytest.mark.parametrize("constraints", [[], ["B <= 4"]], ids=str)
@pytest.mark.parametrize("mode", ["reduced", "complete"])
def test_qr_of_matrices_that_may_be_wide_or_tall(check, mode, constraints):
    sizes = [{"B": 2}, {"B": 4}, *([] if constraints else [{"B": 5}])]
    fn = partial(jnp.linalg.qr, mode=mode)
    check(fn, "f32[B,4]", constraints=constraints, sizes=sizes, rtol=2e-3, atol=2e-4)


TWO_ROWS = np.float32(
    [
        *([[3, 1], [2, 5]], [[1, 2], [3, 4.0001]], [[0, 1], [1, 0]], [[-0.0, 1], [1, 1]]),
        *([[1e-30, 1], [1, 1]], [[1e20, 1], [1, 1e-20]], [[3e38, 3e38], [-3e38, 3e38]]),
        *([[0, 0], [0, 0]], [[1, 2], [2, 4]], [[0, 1], [0, 2]], [[0, 0], [1, 2]]),
        *([[1, 2], [np.nan, 3]], [[np.inf, 1], [1, 1]], [[1, np.inf], [1, 1]]),
    ]
)
"""Ordinary, ill-conditioned, of extreme sizes, singular, and not finite."""


def test_systems_of_two_rows_are_written_out_and_as_exact_as_jax(check):
    inverse = check(jnp.linalg.inv, "f32[B,2,2]", inputs=[[TWO_ROWS]], rtol=1e-6)
    sides = np.broadcast_to(np.float32([[1], [2]]), (len(TWO_ROWS), 2, 1))
    check(jnp.linalg.solve, "f32[B,2,2]", "f32[B,2,1]", inputs=[[TWO_ROWS, sides]], rtol=1e-6)
    check(jnp.linalg.solve, "f32[2,2]", "f32[2]", inputs=[[TWO_ROWS[0], sides[0, :, 0]]])
    check(jnp.linalg.inv, "f32[B,1,1]", inputs=[[TWO_ROWS[:, :1, 1:]]], rtol=1e-6)
    assert {node.domain for node in inverse.graph} == {""}
    assert len(inverse.graph) <= 32


def extended_kalman_filter(x, p, z):
    """Return the state and covariance after one step of a filter with range and bearing."""

    def moved(s):
        return jnp.stack(
            [s[0] + 0.1 * s[2] * jnp.cos(s[3]), s[1] + s[2] * jnp.sin(s[3]), s[2], s[3]]
        )

    def seen(s):
        return jnp.stack([jnp.sqrt(s[0] ** 2 + s[1] ** 2), jnp.arctan2(s[1], s[0])])

    f, h = jax.jacfwd(moved)(x), jax.jacfwd(seen)(moved(x))
    p = f @ p @ f.T + 0.01 * jnp.eye(4)
    gain = p @ h.T @ jnp.linalg.inv(h @ p @ h.T + jnp.diag(jnp.array([0.1, 0.05])))
    return moved(x) + gain @ (z - seen(moved(x))), (jnp.eye(4) - gain @ h) @ p


def test_a_kalman_filter_is_one_graph_of_standard_operators(check):
    x, z = np.float32([1, 2, 0.5, 0.3]), np.float32([2.2, 1.1])
    model = check(
        extended_kalman_filter,
        *("f32[4]", "f32[4,4]", "f32[2]"),
        inputs=[[x, np.eye(4, dtype=np.float32), z]],
        rtol=1e-4,
    )
    smaller = smelt.optimize(model)
    assert {node.domain for node in smaller.graph.all_nodes()} == {""}
    assert smaller.graph.num_nodes() <= 125


def host(fn, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    narrow = [array.astype(np.float32) for array in arrays]
    return smelt.compile(fn, *specs(arrays, "f32"), target="host")(*narrow)


@pytest.mark.parametrize(
    "name",
    [
        "solve",
        "qr_complete",
        "scipy_lu",
        "svdvals",
        "cholesky",
        "scipy_qr_pivoting",
        "tridiagonal_solve",
    ],
)
def test_the_host_agrees_with_jax(name):
    fn, *arrays = DETERMINED[name]
    expected = jax.tree.leaves(fn(*(array.astype(np.float32) for array in arrays)))
    for ours, theirs in zip(host(fn, *arrays), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-3, atol=2e-4)


def onnx(fn, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    from smelt.runtime.onnxruntime import OnnxRuntime

    model = smelt.compile(fn, *specs(arrays, "f32"), target="onnx").model
    return OnnxRuntime(model)(*(array.astype(np.float32) for array in arrays))


@pytest.mark.parametrize("run", [onnx, host], ids=["onnx", "host"])
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("a", [TALL, WIDE, SQUARE], ids=["tall", "wide", "square"])
def test_singular_vectors_multiply_back(run, a: np.ndarray, full: bool):
    u, s, vt = run(lambda a: jnp.linalg.svd(a, full_matrices=full), a)
    count = s.shape[-1]
    np.testing.assert_allclose(
        (u[..., :count] * s[..., None, :]) @ vt[..., :count, :], a, atol=1e-5
    )
    assert u.shape[-1] == (a.shape[-2] if full else count)


@pytest.mark.parametrize("run", [onnx, host], ids=["onnx", "host"])
def test_eigenvectors_multiply_back(run):
    values, vectors = run(jnp.linalg.eigh, POSITIVE)
    np.testing.assert_allclose(
        POSITIVE @ vectors, vectors * values[:, None, :], rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize(
    ("fn", "back"),
    [
        (sl.schur, lambda t, z: z @ t @ z.T),
        (lambda a: sl.hessenberg(a, calc_q=True), lambda h, q: q @ h @ q.T),
    ],
    ids=["schur", "hessenberg"],
)
def test_forms_that_only_the_host_has(fn, back):
    np.testing.assert_allclose(back(*host(fn, SQUARE[0])), SQUARE[0], atol=1e-4)


def test_the_form_of_hessenberg_multiplies_back_in_plain_onnx():
    h, q = onnx(lambda a: sl.hessenberg(a, calc_q=True), SQUARE[0])
    np.testing.assert_allclose(q @ h @ q.T, SQUARE[0], atol=1e-5)
    np.testing.assert_array_equal(np.tril(h, -2), 0)


@pytest.mark.parametrize("lower", [True, False])
def test_a_tridiagonal_form_in_plain_onnx_is_that_of_jax(lower):
    def fn(a):
        return lax.linalg.tridiagonal(a, lower=lower)

    for ours, theirs in zip(onnx(fn, POSITIVE), fn(POSITIVE), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_the_form_of_schur_in_plain_onnx():
    form, vectors = onnx(sl.schur, POSITIVE)
    np.testing.assert_allclose(
        vectors @ form @ np.swapaxes(vectors, 1, 2), POSITIVE, rtol=1e-4, atol=1e-4
    )


def parts_of_eig(a):
    values, vectors = jnp.linalg.eig(a)
    return values.real, values.imag, vectors.real, vectors.imag


def test_eigenvectors_of_matrices_without_symmetry_multiply_back_on_the_host():
    values_re, values_im, re, im = host(parts_of_eig, SQUARE[0])
    values, vectors = values_re + 1j * values_im, re + 1j * im
    assert np.abs(values.imag).max() > 0.1
    np.testing.assert_allclose(SQUARE[0] @ vectors, vectors * values, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=0), 1, rtol=1e-5)


def test_eigenvectors_of_complex_matrices_multiply_back_on_the_host():
    a = SQUARE[0] + 1j * SQUARE[0].T
    values_re, values_im, re, im = host(lambda x: parts_of_eig(x + 1j * x.T), SQUARE[0])
    values, vectors = values_re + 1j * values_im, re + 1j * im
    np.testing.assert_allclose(a @ vectors, vectors * values, atol=1e-4)


def test_complex_form_of_schur_is_triangular_and_multiplies_back_on_the_host():
    def parts(a):
        form, vectors = sl.schur(a, output="complex")
        return form.real, form.imag, vectors.real, vectors.imag

    form_re, form_im, re, im = host(parts, SQUARE[0])
    form, vectors = form_re + 1j * form_im, re + 1j * im
    np.testing.assert_array_equal(np.tril(form, -1), 0)
    np.testing.assert_allclose(vectors @ form @ vectors.conj().T, SQUARE[0], atol=1e-4)


@pytest.mark.parametrize("of", [np.nan, np.inf])
def test_complex_form_of_schur_of_what_is_not_finite_is_nan_as_in_jax(of):
    a = SQUARE[0].copy()
    a[0, 1] = of
    assert np.isnan(host(lambda a: sl.schur(a, output="complex")[0].real, a)).all()


def test_square_root_of_a_matrix_without_symmetry():
    square = (POSITIVE[0] + np.triu(SQUARE[0])).astype(np.float32)
    model = smelt.trace(lambda a: sl.sqrtm(a @ a).real, square)
    (root,) = open_runner(model, "reference")(square)
    np.testing.assert_allclose(root @ root, square @ square, rtol=1e-3, atol=1e-3)


def test_sorted_complex_form_of_schur_is_refused():
    with pytest.raises(smelt.SmeltError) as caught:
        smelt.trace(
            lambda a: (
                lax.linalg.schur(
                    a + 1j * a, sort_eig_vals=True, select_callable=lambda z: z.real > 0
                )[0].real
            ),
            "f32[3,3]",
        )
    assert caught.value.code == "E105"


def test_not_positive_definite_is_nan_as_in_jax(check):
    check(jnp.linalg.cholesky, "f32[2,3,3]", inputs=[[np.stack([-np.eye(3), np.eye(3)])]])


def test_singular_matrices_as_in_jax(check):
    singular = np.array([[[1, 2], [2, 4]], [[0, 0], [0, 0]]])
    for fn in (jnp.linalg.det, jnp.linalg.slogdet, jnp.linalg.pinv, jnp.linalg.matrix_rank):
        check(fn, "f32[2,2,2]", inputs=[[singular]], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "fn", [jnp.linalg.inv, jnp.linalg.det, jnp.linalg.eigvalsh, jnp.linalg.svdvals]
)
def test_unknown_and_empty_batches(check, fn):
    check(fn, "f32[B,3,3]", rtol=1e-2, atol=1e-3, compiled=True)
    check(fn, "f32[0,3,3]")


def test_unknown_orders(check):
    positive = lambda a: a @ a.T + jnp.eye(a.shape[0])  # noqa: E731
    check(lambda a: jnp.linalg.inv(positive(a)), "f32[S,S]", rtol=1e-2, atol=1e-2)
    check(lambda a: jnp.linalg.eigvalsh(positive(a)), "f32[S,S]", rtol=1e-3, atol=1e-4)


def test_updates_a_cholesky_factor(check):
    rng = np.random.default_rng(0)
    root = np.triu(rng.normal(size=(4, 4))) + 4 * np.eye(4)
    vectors = [rng.normal(size=4), np.zeros(4), [0, 1, 0, 2]]
    check(lax.linalg.cholesky_update, "f32[4,4]", "f32[4]", inputs=[[root, w] for w in vectors])
