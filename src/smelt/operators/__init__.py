"""The operators that ONNX lacks: found by domain and name, expanded, or written as functions.

A package adds its own by the entry point group ``smelt.operators``; each entry point names an
``Operator`` or a sequence of them.
"""

from __future__ import annotations

from smelt.extensions import OWN
from smelt.operators import (
    bitcast,
    cholesky,
    concat_interleave,
    dot_general,
    einsum,
    linalg,
    special,
    threefry2x32,
    triangular_solve,
)
from smelt.operators.expand import expand, expansion_rule
from smelt.operators.functions import attach_functions, restore_operators
from smelt.operators.onnxruntime import microsoft
from smelt.operators.registry import all_operators, find, register, register_all

__all__ = [
    "all_operators",
    "attach_functions",
    "expand",
    "expansion_rule",
    "find",
    "register",
    "register_all",
    "restore_operators",
]

register(
    bitcast.OPERATOR,
    cholesky.OPERATOR,
    concat_interleave.OPERATOR,
    dot_general.OPERATOR,
    einsum.OPERATOR,
    threefry2x32.OPERATOR,
    triangular_solve.OPERATOR,
    *linalg.OPERATORS,
    *microsoft.OPERATORS,
    *special.OPERATORS,
    package=OWN,
)
