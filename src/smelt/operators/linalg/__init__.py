"""Linear algebra as operators of the ``smelt`` domain.

The host computes them by LAPACK, or by their reference. Their bodies are loops of ONNX nodes, which
give the same results at any size. Operators without such a body are in ``operators/lapack``.
"""

from __future__ import annotations

from smelt.operators.linalg import (
    complex_cholesky,
    complex_lu,
    complex_qr,
    complex_spectra,
    complex_triangular_solve,
    eigh,
    full_pivot_lu,
    hessenberg,
    lu,
    qr,
    svd,
    tridiagonal_solve,
    validate_nonsingular,
)

OPERATORS = (
    complex_cholesky.OPERATOR,
    complex_lu.OPERATOR,
    complex_qr.OPERATOR,
    *complex_spectra.OPERATORS,
    complex_triangular_solve.OPERATOR,
    eigh.OPERATOR,
    full_pivot_lu.OPERATOR,
    *hessenberg.OPERATORS,
    *lu.OPERATORS,
    *qr.OPERATORS,
    *svd.OPERATORS,
    tridiagonal_solve.OPERATOR,
    validate_nonsingular.OPERATOR,
)
