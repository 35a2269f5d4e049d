"""Lower matrix decompositions to operators of the ``smelt`` domain.

Shapes: ``a`` is ``[..., m, n]``; leading dims are a batch; ``k = min(m, n)``. The algorithms are
LAPACK's; each operator's schema in ``smelt.operators.linalg`` names the routine.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic, max_dim, min_dim
from smelt.frontends.jax.complex_numbers.eigen import COMPLEX_EIG, COMPLEX_SCHUR, EIG
from smelt.frontends.jax.complex_numbers.factors import (
    COMPLEX_CHOLESKY,
    COMPLEX_LU,
    COMPLEX_QR,
    COMPLEX_SOLVE,
)
from smelt.frontends.jax.complex_numbers.spectra import (
    COMPLEX_EIGH,
    COMPLEX_SVD,
    COMPLEX_VALUES,
)
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.linalg.linalg import check_real
from smelt.frontends.jax.registry import lowers
from smelt.frontends.jax.symbolic_transforms import swapped_rows


@lowers("lu")
def lu(cx: Lowering, a: ir.Value) -> tuple[ir.Value, ...]:
    """Lower ``lu`` of ``a [..., m, n]`` to LU, as LAPACK ``getrf``.

    Results: L and U packed ``[..., m, n]``, pivots ``[..., k]``, permutation ``[..., m]``.
    """
    return _smelt(cx, "LU", a, outputs=3)


@lowers("lu_pivots_to_permutation")
def lu_pivots_to_permutation(
    cx: Lowering, pivots: ir.Value, *, permutation_size: Dim
) -> ir.Value | list[Operand]:
    """Lower pivots ``[..., k]`` to a permutation ``[..., permutation_size]``.

    A symbolic ``permutation_size`` becomes a loop that swaps rows.
    """
    if is_symbolic(permutation_size):
        return cx.inline_traced(partial(swapped_rows, size=permutation_size))
    return cx.op("PivotsToPermutation", pivots, domain="smelt", permutation_size=permutation_size)


@lowers("geqrf")
def geqrf(cx: Lowering, a: ir.Value) -> tuple[ir.Value, ...]:
    """Lower ``geqrf`` of ``a [..., m, n]`` to Geqrf, LAPACK's QR by Householder reflectors.

    Results: R with the reflectors below its diagonal ``[..., m, n]``, their scales ``[..., k]``.
    """
    return _smelt(cx, "Geqrf", a, outputs=2)


@lowers("householder_product")
def householder_product(cx: Lowering, a: ir.Value, taus: ir.Value) -> ir.Value:
    """Lower to HouseholderProduct, as LAPACK ``orgqr``: reflectors ``a [..., m, n]`` to Q ``[...,
    m, n]``.
    """
    return _smelt(cx, "HouseholderProduct", a, taus)[0]


@lowers("ormqr")
def ormqr(
    cx: Lowering, a: ir.Value, taus: ir.Value, c: ir.Value, *, left: bool, transpose: bool
) -> ir.Value:
    """Return ``Q @ c``, or ``c @ Q`` unless ``left``, for the square Q of the reflectors in ``a``.

    ``a`` is ``[..., m, k]`` and Q is ``[..., m, m]``; ``transpose`` uses Q transposed.
    """
    rows, columns = cx.avals_in[0].shape[-2:]
    vectors = _resized(cx, a, columns, rows, -1)
    q = _smelt(cx, "HouseholderProduct", vectors, taus)[0]
    if transpose:
        rank = len(cx.avals_in[0].shape)
        q = cx.transpose(q, [*range(rank - 2), rank - 1, rank - 2])
    return cx.op("MatMul", q, c) if left else cx.op("MatMul", c, q)


@lowers("qr")
def qr(
    cx: Lowering, a: ir.Value, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
) -> list[ir.Value]:
    """Return Q, R and, if ``pivoting``, the column order of ``a [..., m, n]``.

    Geqrf (or Geqp3) packs reflectors and R into ``[..., m, n]``. Q ``[..., m, width]`` is expanded
    from the reflectors, R ``[..., width, n]`` is the upper triangle; ``width`` is ``m`` if
    ``full_matrices``, else ``min(m, n)``. Either of m and n may be larger. ``use_magma`` chooses a
    GPU library, so it has no effect here.
    """
    rows, columns = cx.avals_in[0].shape[-2:]
    packed, taus, *order = _smelt(
        cx, "Geqp3" if pivoting else "Geqrf", a, outputs=3 if pivoting else 2
    )
    width = rows if full_matrices else min_dim(rows, columns)
    vectors = _resized(cx, packed, columns, width, -1)
    q = _smelt(cx, "HouseholderProduct", vectors, taus)[0]
    r = _resized(cx, packed, rows, width, -2)
    return [q, cx.op("Trilu", r, upper=1), *order]


@lowers("eigh")
def eigh(
    cx: Lowering,
    a: ir.Value,
    *,
    lower: bool,
    sort_eigenvalues: bool,
    subset_by_index: object,
    algorithm: object,
) -> tuple[ir.Value, ...]:
    """Lower to Eigh: vectors ``[..., n, n]`` and ascending values ``[..., n]``.

    Values are always sorted; ``algorithm`` is ignored. Refuses a subset.
    """
    if subset_by_index is not None:
        raise cx.unsupported("a subset of the eigenvalues is asked for")
    return _smelt(cx, "Eigh", a, outputs=2, lower=int(lower))


@lowers(EIG)
def eig(cx: Lowering, a: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to Eig: real and imaginary parts of values, left and right vectors."""
    return _smelt(cx, "Eig", a, outputs=6)


@lowers(COMPLEX_EIG)
def complex_eig(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexEig: parts of values, left and right vectors."""
    return _smelt(cx, "ComplexEig", re, im, outputs=6)


@lowers(COMPLEX_SCHUR)
def complex_schur(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexSchur: real and imaginary parts of the triangular form, then of the
    vectors.
    """
    return _smelt(cx, "ComplexSchur", re, im, outputs=4)


@lowers(COMPLEX_CHOLESKY)
def complex_cholesky(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexCholesky: the parts of the lower factor."""
    return _smelt(cx, "ComplexCholesky", re, im, outputs=2)


@lowers(COMPLEX_QR)
def complex_qr(
    cx: Lowering, re: ir.Value, im: ir.Value, *, full_matrices: bool
) -> tuple[ir.Value, ...]:
    """Lower to ComplexQR: the parts of Q and of R."""
    return _smelt(cx, "ComplexQR", re, im, outputs=4, full_matrices=int(full_matrices))


@lowers(COMPLEX_LU)
def complex_lu(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexLU: parts of the factors, pivots, permutation."""
    return _smelt(cx, "ComplexLU", re, im, outputs=4)


@lowers(COMPLEX_SOLVE)
def complex_triangular_solve(cx: Lowering, *parts: ir.Value, **flags: bool) -> tuple[ir.Value, ...]:
    """Lower to ComplexTriangularSolve: the real and the imaginary part of the solution."""
    attributes = {name: int(flag) for name, flag in flags.items()}
    return _smelt(cx, "ComplexTriangularSolve", *parts, outputs=2, **attributes)


@lowers(COMPLEX_EIGH)
def complex_eigh(cx: Lowering, re: ir.Value, im: ir.Value, *, lower: bool) -> tuple[ir.Value, ...]:
    """Lower to ComplexEigh: parts of the vectors, then the values."""
    return _smelt(cx, "ComplexEigh", re, im, outputs=3, lower=int(lower))


@lowers(COMPLEX_SVD)
def complex_svd(
    cx: Lowering, re: ir.Value, im: ir.Value, *, full_matrices: bool
) -> tuple[ir.Value, ...]:
    """Lower to ComplexSVD: the values, then the parts of U and of the adjoint of V."""
    return _smelt(cx, "ComplexSVD", re, im, outputs=5, full_matrices=int(full_matrices))


@lowers(COMPLEX_VALUES)
def complex_singular_values(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexSingularValues: real values ``[..., k]``."""
    return _smelt(cx, "ComplexSingularValues", re, im)


@lowers("svd")
def svd(
    cx: Lowering,
    a: ir.Value,
    *,
    full_matrices: bool,
    compute_uv: bool,
    subset_by_index: object,
    algorithm: object,
) -> tuple[ir.Value, ...]:
    """Lower to SVD, or to SingularValues if no vectors are requested; refuses a subset."""
    if subset_by_index is not None:
        raise cx.unsupported("a subset of the singular values is asked for")
    if not compute_uv:
        return _smelt(cx, "SingularValues", a)
    return _smelt(cx, "SVD", a, outputs=3, full_matrices=int(full_matrices))


@lowers("schur")
def schur(
    cx: Lowering,
    a: ir.Value,
    *,
    compute_schur_vectors: bool,
    sort_eig_vals: bool,
    select_callable: object,
) -> tuple[ir.Value, ...]:
    """Lower to Schur; refuses sorted eigenvalues."""
    if sort_eig_vals:
        raise cx.unsupported("the eigenvalues are to be sorted")
    return _smelt(cx, "Schur", a, outputs=2)[: 2 if compute_schur_vectors else 1]


@lowers("hessenberg")
def hessenberg(cx: Lowering, a: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to Hessenberg: packed form and reflector scales."""
    return _smelt(cx, "Hessenberg", a, outputs=2)


@lowers("tridiagonal")
def tridiagonal(cx: Lowering, a: ir.Value, *, lower: bool) -> tuple[ir.Value, ...]:
    """Lower to Tridiagonal: packed form, diagonals and reflector scales."""
    return _smelt(cx, "Tridiagonal", a, outputs=4, lower=int(lower))


@lowers("tridiagonal_solve")
def tridiagonal_solve(
    cx: Lowering,
    lower: ir.Value,
    diagonal: ir.Value,
    upper: ir.Value,
    b: ir.Value,
    *,
    perturb_singular: bool,
) -> ir.Value:
    """Lower to TridiagonalSolve; refuses ``perturb_singular``."""
    if perturb_singular:
        raise cx.unsupported("a singular matrix is to be perturbed, as JAX alone does it")
    return _smelt(cx, "TridiagonalSolve", lower, diagonal, upper, b)[0]


@lowers("symmetric_product")
def symmetric_product(
    cx: Lowering, a: ir.Value, c: ir.Value, *, alpha: float, beta: float
) -> ir.Value:
    """Return ``alpha * a @ a.T + beta * c`` for ``a [..., n, k]`` and ``c [..., n, n]``."""
    rank = len(cx.avals_in[0].shape)
    transposed = cx.transpose(a, [*range(rank - 2), rank - 1, rank - 2])
    result = cx.op("Mul", cx.op("MatMul", a, transposed), cx.const_like(alpha, a))
    # As in BLAS, a term with factor 0 is not read, so it may be NaN.
    return cx.op("Add", result, cx.op("Mul", c, cx.const_like(beta, c))) if beta else result


def _smelt(
    cx: Lowering, name: str, *inputs: ir.Value, outputs: int = 1, **attributes: int
) -> tuple[ir.Value, ...]:
    """Return the outputs of one ``smelt`` node; raises E102 unless all inputs are float32 or
    float64.
    """
    for value in inputs:
        check_real(value)
    ops: Callable[..., tuple[ir.Value, ...]] = cx.builder.ops
    return ops(name, *inputs, outputs=outputs, domain="smelt", **attributes)


def _resized(cx: Lowering, a: ir.Value, size: Dim, new_size: Dim, axis: int) -> ir.Value:
    """Return ``a`` with ``axis``, of ``size`` elements, cut or zero-padded at the end to
    ``new_size``.
    """
    missing, axis = max_dim(new_size - size, 0), len(cx.avals_in[0].shape) + axis
    if not _is_zero(missing):
        pads = cx.shape_value([0, missing])
        a = cx.op("Pad", a, pads, cx.const_like(0, a), cx.const_i64([axis]))
    if _is_zero(max_dim(size - new_size, 0)):
        return a
    return cx.slice(a, [0], [new_size], [axis])


def _is_zero(size: Dim) -> bool:
    """True if ``size`` is the number 0; False for symbolic sizes."""
    return not is_symbolic(size) and size == 0
