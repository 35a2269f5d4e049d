"""Operators beyond ONNX on the host: LAPACK, semirings, and references of declared operators."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from one_operator import source

from smelt import operators
from smelt.operators import registry
from smelt.operators.declare import Operator, Result

CHOLESKY, SOLVE, DOT = (
    operators.find("smelt", name) for name in ("Cholesky", "TriangularSolve", "DotGeneral")
)


@pytest.mark.parametrize("lower", [0, 1])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 2, 2), (2, 0, 0), (1, 1)])
@pytest.mark.parametrize("dtype", ["float", "double"])
def test_cholesky(compile_host, lower: int, shape: tuple[int, ...], dtype: str) -> None:
    kind = {"float": np.float32, "double": np.float64}[dtype]
    root = np.random.default_rng(0).standard_normal(shape)
    a = (root @ root.swapaxes(-1, -2) + np.eye(shape[-1])).astype(kind)
    if shape == (2, 4, 4):
        a[1, 2, 2] = -1
    dims = ",".join("BNN"[-len(shape) :])
    artifact = compile_host(
        f"g ({dtype}[{dims}] a) => (l) {{ l = smelt.Cholesky<lower={lower}>(a) }}"
    )
    (factor,) = artifact(a)
    (expected,) = CHOLESKY.reference((a,), {"lower": lower})
    assert factor.dtype == kind
    np.testing.assert_allclose(factor, expected, rtol=1e-4 if dtype == "float" else 1e-10)


@pytest.mark.parametrize("flags", list(itertools.product([0, 1], repeat=4)))
@pytest.mark.parametrize("batch", [(), (2, 3), (0,)])
def test_triangular_solve(compile_host, flags: tuple[int, ...], batch: tuple[int, ...]) -> None:
    names = ("left_side", "lower", "transpose_a", "unit_diagonal")
    attributes = dict(zip(names, flags, strict=True))
    rng = np.random.default_rng(0)
    a = rng.standard_normal((*batch, 4, 4)) + 4 * np.eye(4)
    b = rng.standard_normal((*batch, 4, 3) if attributes["left_side"] else (*batch, 3, 4))
    listed = ", ".join(f"{name}={flag}" for name, flag in attributes.items())
    types = [f"double[{','.join(map(str, array.shape))}]" for array in (a, b)]
    artifact = compile_host(
        f"g ({types[0]} a, {types[1]} b) => (x) {{ x = smelt.TriangularSolve<{listed}>(a, b) }}"
    )
    (expected,) = SOLVE.reference((a, b), attributes)
    np.testing.assert_allclose(artifact(a, b)[0], expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 3), (2, 3, 4), (0, 2, 2), (2, 0, 3), (3, 0)])
def test_lu(compile_host, shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(0).standard_normal(shape)
    dims = ",".join("BMN"[-len(shape) :])
    artifact = compile_host(f"g (double[{dims}] a) => (lu, p, q) {{ lu, p, q = smelt.LU(a) }}")
    lu = operators.find("smelt", "LU")
    for ours, theirs in zip(artifact(a), lu.reference((a,), {}), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_a_singular_triangle_divides_by_zero(compile_host) -> None:
    artifact = compile_host(
        "g (double[2,2] a, double[2,1] b) => (x) { x = smelt.TriangularSolve(a, b) }"
    )
    (x,) = artifact(np.diag([2.0, 0.0]), np.ones((2, 1)))
    np.testing.assert_array_equal(x, [[0.5], [np.inf]])


def test_solving_with_a_factor_end_to_end(compile_host) -> None:
    artifact = compile_host("""g (double[B,N,N] a, double[B,N,K] b) => (x) {
        l = smelt.Cholesky(a)
        h = smelt.TriangularSolve(l, b)
        x = smelt.TriangularSolve<transpose_a=1>(l, h)
    }""")
    root = np.random.default_rng(0).standard_normal((3, 5, 5))
    a, b = root @ root.swapaxes(-1, -2) + np.eye(5), np.ones((3, 5, 2))
    np.testing.assert_allclose(a @ artifact(a, b)[0], b, atol=1e-9)


@pytest.mark.parametrize("semiring", ["sum_product", "max_plus", "min_plus"])
@pytest.mark.parametrize("inner", [0, 1, 4])
def test_semirings(compile_host, semiring: str, inner: int) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 3, inner)), rng.standard_normal((2, 5, inner))
    numbers = "lhs_contracting=[2], rhs_contracting=[2], lhs_batch=[0], rhs_batch=[0]"
    artifact = compile_host(
        f'g (double[B,M,K] x, double[B,N,K] y) => (z) {{ z = smelt.DotGeneral<{numbers}, semiring="{semiring}">(x, y) }}'
    )
    dims = {"lhs_contracting": (2,), "rhs_contracting": (2,), "lhs_batch": (0,), "rhs_batch": (0,)}
    (expected,) = DOT.reference((x, y), {**dims, "dtype": None, "semiring": semiring})
    np.testing.assert_allclose(artifact(x, y)[0], expected, rtol=1e-12)


def test_narrow_operands_with_a_wide_result(compile_host) -> None:
    artifact = compile_host(
        "g (int8[2,300] x, int8[300,2] y) => (z) {"
        " z = smelt.DotGeneral<lhs_contracting=[1], rhs_contracting=[0], dtype=6>(x, y) }"
    )
    (z,) = artifact(np.full((2, 300), 100, np.int8), np.full((300, 2), -100, np.int8))
    assert z.dtype == np.int32
    np.testing.assert_array_equal(z, -3_000_000)


def test_any_declared_operator_runs_by_its_reference(compile_host) -> None:
    backwards = Operator(
        domain="example",
        name="Reversed",
        inputs=("x",),
        outputs=("y",),
        infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),
        reference=lambda inputs, attributes: (inputs[0][::-1],),
    )
    with registry.OPERATORS.refilled():
        operators.register(backwards)
        artifact = compile_host("g (float[N] x) => (y) { r = example.Reversed(x) y = Neg(r) }")
        np.testing.assert_array_equal(artifact(np.array([1, 2], np.float32))[0], [-2, -1])


@pytest.mark.parametrize("name", ["Eig", "ComplexEig"])
@pytest.mark.parametrize(("dtype", "exponent"), [("float32", 66), ("float64", 990)])
def test_eigenvalues_of_any_scale(compile_host, name: str, dtype: str, exponent: int) -> None:
    """A matrix times a power of two has its eigenvalues times that power; some builds of LAPACK do
    not scale them back.
    """
    matrix = np.random.default_rng(0).standard_normal((2, 4, 4)).astype(dtype)
    given = (matrix,) * (2 if name == "ComplexEig" else 1)
    run = compile_host(source(name, 6, *given))
    usual = run(*given)
    for shift in (exponent, -exponent):
        parts = run(*(np.ldexp(a, shift) for a in given))
        parts = (*(np.ldexp(part, -shift) for part in parts[:2]), *parts[2:])
        for part, wanted in zip(_in_order(parts), _in_order(usual), strict=True):
            np.testing.assert_allclose(part, wanted, atol=1e-4 if dtype == "float32" else 1e-10)


def _in_order(parts):
    """Eigenvalues and vectors by real part, then imaginary part; LAPACK's order may differ."""
    order = np.lexsort((parts[1].round(3), parts[0].round(3)), axis=-1)
    return [
        np.take_along_axis(part, order if part.ndim == 2 else order[:, None], axis=-1)
        for part in parts
    ]
