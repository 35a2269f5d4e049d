"""Eigenvalues and Schur's forms of general matrices, by LAPACK on ``host``.

Elsewhere reflections and QR steps compute them, on ``c`` by kernels. They reach smelt as
operators of any package do, by the entry point group ``smelt.operators``; nothing here imports
them.
"""

from __future__ import annotations

from smelt.operators.lapack import complex_matrices, eig, schur

OPERATORS = (*complex_matrices.OPERATORS, eig.OPERATOR, schur.OPERATOR)
