"""Linear algebra kernels through LAPACK and BLAS."""

from __future__ import annotations

import numpy as np

from smelt.operators.linalg.complex_operands import complex_of
from smelt.operators.linalg.full_pivot_lu import factor as full_pivot_factor
from smelt.operators.linalg.lu import permutation_of
from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel


@kernel("smelt::Cholesky")
def cholesky(call: Call) -> Step:
    """Return the step that factors each matrix with ``potrf``.

    A matrix that is not positive definite gives NaN in the triangle of the factor.
    """
    from scipy.linalg.lapack import get_lapack_funcs

    lower = bool(call.integer("lower"))
    order = call.input(0).shape[-1]
    (potrf,) = get_lapack_funcs(("potrf",), dtype=call.input(0).dtype)
    triangle = np.tri(order, dtype=bool) if lower else np.tri(order, dtype=bool).T

    def run(a: Array, out: Array) -> None:
        """Write the factor of each matrix, NaN in the triangle if there is none."""
        if order == 0:
            return
        for index in np.ndindex(*a.shape[:-2]):
            factor, info = potrf(a[index], lower=lower, clean=1)
            out[index] = factor if info == 0 else np.where(triangle, np.nan, 0)

    return Step(run)


def _flags_of_trsm(call: Call) -> dict[str, int]:
    """Return the keyword arguments of BLAS ``trsm`` for the attributes of ``call``."""
    return {
        "side": 0 if call.integer("left_side") else 1,
        "lower": call.integer("lower"),
        "trans_a": call.integer("transpose_a"),
        "diag": call.integer("unit_diagonal"),
    }


@kernel("smelt::TriangularSolve")
def triangular_solve(call: Call) -> Step:
    """Return the step that solves systems with ``trsm``; a zero pivot gives inf or NaN."""
    from scipy.linalg.blas import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), dtype=call.input(0).dtype)
    flags = _flags_of_trsm(call)
    empty = 0 in call.outputs[0].shape

    def run(a: Array, b: Array, out: Array) -> None:
        """Write the solution of each system."""
        if empty:
            return
        for index in np.ndindex(*a.shape[:-2]):
            out[index] = trsm(1.0, a[index], b[index], **flags)

    return Step(run)


@kernel("smelt::LU")
def lu(call: Call) -> Step:
    """Return the step that factors each matrix with ``getrf``."""
    from scipy.linalg.lapack import get_lapack_funcs

    rows, columns = call.input(0).shape[-2:]
    (getrf,) = get_lapack_funcs(("getrf",), dtype=call.input(0).dtype)

    def run(a: Array, out: Array, pivots: Array, permutation: Array) -> None:
        """Write factors, pivots and permutation of each matrix."""
        for index in np.ndindex(*a.shape[:-2]):
            if min(rows, columns):
                out[index], pivots[index], _ = getrf(a[index])
            permutation[index] = permutation_of(pivots[index], rows)

    return Step(run)


@kernel("smelt::ComplexLU")
def complex_lu(call: Call) -> Step:
    """Return the step that factors each complex matrix, given by its two parts, with ``getrf``."""
    from scipy.linalg.lapack import get_lapack_funcs

    rows, columns = call.input(0).shape[-2:]
    (getrf,) = get_lapack_funcs(("getrf",), dtype=np.result_type(call.input(0).dtype, np.complex64))

    def run(re: Array, im: Array, *out: Array) -> None:
        """Write factors, pivots and permutation of each complex matrix."""
        for index in np.ndindex(*re.shape[:-2]):
            if min(rows, columns):
                factors, out[2][index], _ = getrf(complex_of(re[index], im[index]))
                out[0][index], out[1][index] = factors.real, factors.imag
            out[3][index] = permutation_of(out[2][index], rows)

    return Step(run)


@kernel("smelt::ComplexTriangularSolve")
def complex_triangular_solve(call: Call) -> Step:
    """Return the step that solves each complex system, given by two parts, with ``trsm``."""
    from scipy.linalg.blas import get_blas_funcs

    (trsm,) = get_blas_funcs(("trsm",), dtype=np.result_type(call.input(0).dtype, np.complex64))
    flags = _flags_of_trsm(call)
    sign, empty = -1 if call.integer("conjugate_a") else 1, 0 in call.outputs[0].shape

    def run(a_re: Array, a_im: Array, b_re: Array, b_im: Array, re: Array, im: Array) -> None:
        """Write the solution of each complex system."""
        for index in np.ndindex(*a_re.shape[:-2]) if not empty else ():
            a, b = complex_of(a_re[index], sign * a_im[index]), complex_of(b_re[index], b_im[index])
            x = trsm(1.0, a, b, **flags)
            re[index], im[index] = x.real, x.imag

    return Step(run)


@kernel("smelt::FullPivotLU")
def full_pivot_lu(call: Call) -> Step:
    """Return the step that factors each matrix with full pivoting.

    LAPACK's ``getc2`` factors square matrices. The reference factors all others, and those whose
    small pivots ``getc2`` would change.
    """
    from scipy.linalg.lapack import get_lapack_funcs

    rows, columns = call.input(0).shape[-2:]
    (getc2,) = get_lapack_funcs(("getc2",), dtype=call.input(0).dtype)

    def factor(a: Array) -> tuple[Array, ...]:
        """Return the factors and both permutations of a matrix, by LAPACK where it succeeds."""
        if rows == columns:
            lu, row_swaps, column_swaps, info = getc2(a)
            if info == 0:
                return lu, permutation_of(row_swaps, rows), permutation_of(column_swaps, rows)
        return full_pivot_factor(a)

    def run(a: Array, *out: Array) -> None:
        """Write factors and permutations of each matrix."""
        for index in np.ndindex(*a.shape[:-2]) if rows and columns else ():
            for target, result in zip(out, factor(a[index]), strict=True):
                target[index] = result
        if not (rows and columns):
            out[1][...], out[2][...] = np.arange(rows), np.arange(columns)

    return Step(run)


@kernel("Det", wide=True)
def det(call: Call) -> Step:
    """Return the step of ``np.linalg.det``, which uses an LU decomposition."""
    return Step(lambda x, out: np.copyto(out, np.linalg.det(x)))
