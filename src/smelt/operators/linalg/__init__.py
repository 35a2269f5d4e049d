"""Linear algebra as operators of the ``smelt`` domain.

The host computes them by LAPACK. Where loops of ONNX nodes reach the same results at any size,
they are the body; the others need a target that has the operator.
"""

from __future__ import annotations

from smelt.operators.linalg import (
    complex_matrices,
    eig,
    eigh,
    lu,
    qr,
    reductions,
    svd,
    tridiagonal_solve,
)

OPERATORS = (
    *complex_matrices.OPERATORS,
    eig.OPERATOR,
    eigh.OPERATOR,
    *lu.OPERATORS,
    *qr.OPERATORS,
    *reductions.OPERATORS,
    *svd.OPERATORS,
    tridiagonal_solve.OPERATOR,
)
