"""Decompositions by LAPACK without a body of ONNX nodes.

Only a target that takes them as they are has them: ``host``, and ``c`` for ``Eig``. They reach
smelt as those of any package do, by the entry point group ``smelt.operators``; nothing here imports
them.
"""

from __future__ import annotations

from smelt.operators.lapack import complex_matrices, eig, schur

OPERATORS = (*complex_matrices.OPERATORS, eig.OPERATOR, schur.OPERATOR)
