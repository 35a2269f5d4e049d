"""Decompositions that LAPACK computes and ONNX cannot express: operators without a body.

Only a target that takes them as they are has them, such as ``host``. They reach smelt as those of
any package do, by the entry point group ``smelt.operators``; nothing here imports them.
"""

from __future__ import annotations

from smelt.operators.lapack import complex_matrices, eig, reductions

OPERATORS = (*complex_matrices.OPERATORS, eig.OPERATOR, *reductions.OPERATORS)
