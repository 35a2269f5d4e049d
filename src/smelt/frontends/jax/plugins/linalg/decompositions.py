"""Lower decompositions of real matrices to operators of the ``smelt`` domain.

Shapes: ``a`` is ``[..., m, n]``, or ``[..., n, n]`` where it is square; leading dims are a batch;
``k = min(m, n)``. Results are those of the LAPACK routine that each function names; the modules in
``smelt.operators.linalg`` and ``smelt.operators.lapack`` compute them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import onnx_ir as ir

from smelt.frontends.jax.compat import Dim, is_symbolic, max_dim, min_dim
from smelt.frontends.jax.complex_numbers.eigen import EIG
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.open_sizes.symbolic_transforms import swapped_rows
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.linalg.linalg import check_real
from smelt.frontends.jax.registry import lowers


@lowers("lu")
def lu(cx: Lowering, a: ir.Value) -> tuple[ir.Value, ...]:
    """Lower ``lu`` of ``a [..., m, n]`` to LU, as LAPACK ``getrf``.

    Results: L and U packed ``[..., m, n]``, pivots ``[..., k]``, permutation ``[..., m]``.
    """
    return smelt_node(cx, "LU", a, outputs=3)


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
    return smelt_node(cx, "Geqrf", a, outputs=2)


@lowers("householder_product")
def householder_product(cx: Lowering, a: ir.Value, taus: ir.Value) -> ir.Value:
    """Lower to HouseholderProduct, LAPACK's ``orgqr``.

    The reflectors ``a [..., m, n]`` and their scales ``taus [..., k]`` give Q ``[..., m, n]``.
    """
    return smelt_node(cx, "HouseholderProduct", a, taus)[0]


@lowers("ormqr")
def ormqr(
    cx: Lowering, a: ir.Value, taus: ir.Value, c: ir.Value, *, left: bool, transpose: bool
) -> ir.Value:
    """Return ``Q @ c``, or ``c @ Q`` unless ``left``, for the square Q of the reflectors in ``a``.

    ``a`` is ``[..., m, k]`` and Q is ``[..., m, m]``; ``transpose`` uses Q transposed.
    """
    rows, columns = cx.avals_in[0].shape[-2:]
    vectors = _resized(cx, a, columns, rows, -1)
    q = smelt_node(cx, "HouseholderProduct", vectors, taus)[0]
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
    packed, taus, *order = smelt_node(
        cx, "Geqp3" if pivoting else "Geqrf", a, outputs=3 if pivoting else 2
    )
    width = rows if full_matrices else min_dim(rows, columns)
    vectors = _resized(cx, packed, columns, width, -1)
    q = smelt_node(cx, "HouseholderProduct", vectors, taus)[0]
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
    """Lower to Eigh, LAPACK's ``syevd`` of symmetric matrices: vectors ``[..., n, n]``, values.

    Only the triangle that ``lower`` chooses is read. The values ``[..., n]`` always ascend;
    ``algorithm`` is ignored. Raises E102 for a subset of the values.
    """
    if subset_by_index is not None:
        raise cx.unsupported("it computes only a subset of the eigenvalues")
    return smelt_node(cx, "Eigh", a, outputs=2, lower=int(lower))


@lowers(EIG)
def eig(cx: Lowering, a: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to Eig, LAPACK's ``geev``: the values ``[..., n]``, left and right vectors.

    Vectors are the columns of ``[..., n, n]``. Each result is a real and an imaginary part.
    """
    return smelt_node(cx, "Eig", a, outputs=6)


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
    """Lower to SVD, LAPACK's ``gesdd``: values ``[..., k]``, U and the transpose of V.

    U is ``[..., m, k]`` and V^T ``[..., k, n]``; with ``full_matrices`` they are square. Without
    ``compute_uv`` SingularValues returns the values alone. Raises E102 for a subset.
    """
    if subset_by_index is not None:
        raise cx.unsupported("it computes only a subset of the singular values")
    if not compute_uv:
        return smelt_node(cx, "SingularValues", a)
    return smelt_node(cx, "SVD", a, outputs=3, full_matrices=int(full_matrices))


@lowers("schur")
def schur(
    cx: Lowering,
    a: ir.Value,
    *,
    compute_schur_vectors: bool,
    sort_eig_vals: bool,
    select_callable: object,
) -> tuple[ir.Value, ...]:
    """Lower to Schur, LAPACK's ``gees``: ``a = Z @ T @ Z.T`` with an orthogonal Z.

    T is quasi-triangular: it has blocks of 2x2 for pairs of complex eigenvalues. Returns T, and Z
    with ``compute_schur_vectors``, each ``[..., n, n]``. Raises E102 for sorted eigenvalues.
    """
    if sort_eig_vals:
        raise cx.unsupported("it sorts the eigenvalues")
    return smelt_node(cx, "Schur", a, outputs=2)[: 2 if compute_schur_vectors else 1]


@lowers("hessenberg")
def hessenberg(cx: Lowering, a: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to Hessenberg, LAPACK's ``gehrd``: ``a = Q @ H @ Q.T``, H zero below its subdiagonal.

    The packed result ``[..., n, n]`` has H, and the reflectors of Q below it. Their scales are
    ``[..., n - 1]``.
    """
    return smelt_node(cx, "Hessenberg", a, outputs=2)


@lowers("tridiagonal")
def tridiagonal(cx: Lowering, a: ir.Value, *, lower: bool) -> tuple[ir.Value, ...]:
    """Lower to Tridiagonal, LAPACK's ``sytrd``: ``a = Q @ T @ Q.T`` for a symmetric ``a``.

    Returns T with the reflectors of Q ``[..., n, n]``, the diagonal of T ``[..., n]``, its side
    diagonal and the scales of the reflectors, both ``[..., n - 1]``.
    """
    return smelt_node(cx, "Tridiagonal", a, outputs=4, lower=int(lower))


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
    """Lower to TridiagonalSolve: the solution ``[..., n, k]`` of systems with three diagonals.

    The diagonals are ``[..., n]``, ``b`` is ``[..., n, k]``. Gaussian elimination with pivoting;
    raises E102 for ``perturb_singular``.
    """
    if perturb_singular:
        raise cx.unsupported("it perturbs singular matrices in a way that only JAX defines")
    return smelt_node(cx, "TridiagonalSolve", lower, diagonal, upper, b)[0]


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


def smelt_node(
    cx: Lowering, name: str, *inputs: ir.Value, outputs: int = 1, **attributes: int
) -> tuple[ir.Value, ...]:
    """Return the outputs of one node of the ``smelt`` domain.

    Raises Unsupported E102 unless all inputs are float32 or float64.
    """
    for value in inputs:
        check_real(value)
    ops: Callable[..., tuple[ir.Value, ...]] = cx.builder.ops
    return ops(name, *inputs, outputs=outputs, domain="smelt", **attributes)


def _resized(cx: Lowering, a: ir.Value, size: Dim, new_size: Dim, axis: int) -> ir.Value:
    """Return ``a`` with ``new_size`` elements on ``axis``: cut, or zero-padded at the end.

    ``size`` is the present number of elements. If it is unknown which is larger, both are done.
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
