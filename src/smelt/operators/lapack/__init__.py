"""Eigenvalues and Schur forms of general matrices, by LAPACK on ``host``.

Other targets compute them by reflections and QR steps, ``c`` by kernels. smelt finds them like
operators of any package, by the entry point group ``smelt.operators``; no code here imports them.
"""

from __future__ import annotations

from smelt.operators.lapack import complex_matrices, eig, schur

OPERATORS = (*complex_matrices.OPERATORS, eig.OPERATOR, schur.OPERATOR)
