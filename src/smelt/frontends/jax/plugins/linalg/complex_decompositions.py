"""Lower decompositions of complex matrices to operators of the ``smelt`` domain.

ONNX computes with real numbers only, so each complex operand and result is two arrays of equal
shape: its real and its imaginary part. Shapes are those of ``decompositions.py``: ``[..., m, n]``
or ``[..., n, n]``, and ``k = min(m, n)``. Functions name the LAPACK routine with equal results.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.frontends.jax.complex_numbers.eigen import COMPLEX_EIG, COMPLEX_SCHUR
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
from smelt.frontends.jax.plugins.linalg.decompositions import smelt_node
from smelt.frontends.jax.registry import lowers


@lowers(COMPLEX_EIG)
def complex_eig(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexEig, LAPACK's ``geev``: the values ``[..., n]``, left and right vectors.

    Vectors are the columns of ``[..., n, n]``.
    """
    return smelt_node(cx, "ComplexEig", re, im, outputs=6)


@lowers(COMPLEX_SCHUR)
def complex_schur(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexSchur, LAPACK's ``gees``: ``a = Z @ T @ Z^H``.

    Returns the upper triangular T, then the unitary Z, both ``[..., n, n]``.
    """
    return smelt_node(cx, "ComplexSchur", re, im, outputs=4)


@lowers(COMPLEX_CHOLESKY)
def complex_cholesky(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexCholesky: the lower triangular L ``[..., n, n]`` of ``a = L @ L^H``."""
    return smelt_node(cx, "ComplexCholesky", re, im, outputs=2)


@lowers(COMPLEX_QR)
def complex_qr(
    cx: Lowering, re: ir.Value, im: ir.Value, *, full_matrices: bool
) -> tuple[ir.Value, ...]:
    """Lower to ComplexQR, LAPACK's ``geqrf`` and ``ungqr``: Q ``[..., m, k]``, R ``[..., k, n]``.

    With ``full_matrices``, Q is ``[..., m, m]`` and R ``[..., m, n]``.
    """
    return smelt_node(cx, "ComplexQR", re, im, outputs=4, full_matrices=int(full_matrices))


@lowers(COMPLEX_LU)
def complex_lu(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexLU, LAPACK's ``getrf``: L and U packed ``[..., m, n]``, then row orders.

    These are real: the int32 pivots ``[..., k]`` and the permutation ``[..., m]``.
    """
    return smelt_node(cx, "ComplexLU", re, im, outputs=4)


@lowers(COMPLEX_SOLVE)
def complex_triangular_solve(cx: Lowering, *parts: ir.Value, **flags: bool) -> tuple[ir.Value, ...]:
    """Lower to ComplexTriangularSolve: x of ``a @ x = b``, or of ``x @ a = b``, like ``b``.

    ``parts`` are those of the triangular ``a [..., m, m]`` and of ``b``, which is ``[..., m, n]``
    or ``[..., n, m]``. The flags, such as ``left_side``, become attributes.
    """
    attributes = {name: int(flag) for name, flag in flags.items()}
    return smelt_node(cx, "ComplexTriangularSolve", *parts, outputs=2, **attributes)


@lowers(COMPLEX_EIGH)
def complex_eigh(cx: Lowering, re: ir.Value, im: ir.Value, *, lower: bool) -> tuple[ir.Value, ...]:
    """Lower to ComplexEigh, LAPACK's ``heevd``: vectors ``[..., n, n]``, real values ``[..., n]``.

    Only the triangle that ``lower`` chooses is read.
    """
    return smelt_node(cx, "ComplexEigh", re, im, outputs=3, lower=int(lower))


@lowers(COMPLEX_SVD)
def complex_svd(
    cx: Lowering, re: ir.Value, im: ir.Value, *, full_matrices: bool
) -> tuple[ir.Value, ...]:
    """Lower to ComplexSVD, LAPACK's ``gesdd``: real values ``[..., k]``, U and the adjoint of V.

    U is ``[..., m, k]`` and V^H ``[..., k, n]``; with ``full_matrices`` they are square.
    """
    return smelt_node(cx, "ComplexSVD", re, im, outputs=5, full_matrices=int(full_matrices))


@lowers(COMPLEX_VALUES)
def complex_singular_values(cx: Lowering, re: ir.Value, im: ir.Value) -> tuple[ir.Value, ...]:
    """Lower to ComplexSingularValues: real values ``[..., k]``, in descending order."""
    return smelt_node(cx, "ComplexSingularValues", re, im)
