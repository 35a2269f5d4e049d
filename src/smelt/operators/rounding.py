"""Two tables: operators that round, and operators whose results are equal in every kernel."""

from __future__ import annotations

from smelt.ir.opset import MOVEMENT
from smelt.operators.elementwise import ROWS, Rounding

ROUNDED_ALIKE = (
    MOVEMENT
    | {name for name, row in ROWS.items() if row.rounding is not Rounding.FREE}
    | {
        *("ArgMax", "ArgMin", "CastLike", "Compress", "Constant", "ConstantOfShape", "CumSum"),
        *("Dropout", "EyeLike", "Hardmax", "MaxPool", "NonZero", "OneHot", "Range", "ReduceMax"),
        *("ReduceMin", "ScatterElements", "ScatterND", "Shape", "Size", "TopK", "Trilu", "Unique"),
    }
)
"""Operators whose kernels give the same floats in every runtime and at every position of a tensor:
they round once by IEEE 754, in the order that ONNX defines, or not at all. Log is not one: a
vectorized Log differs from the scalar Log that computes the last elements of a row."""

_INEXACT = (Rounding.ONCE, Rounding.FREE)

ROUNDING = frozenset(
    {
        *(n for n, row in ROWS.items() if row.rounding in _INEXACT and row.operands is not None),
        *("Attention", "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "Gemm"),
        *("GlobalAveragePool", "GroupNormalization", "InstanceNormalization"),
        *("LayerNormalization", "LogSoftmax", "MatMul", "RMSNormalization", "ReduceL2"),
        *("ReduceLogSumExp", "ReduceMean", "ReduceSum", "Softmax"),
    }
)
"""Operators whose results are rounded. Sums and products of two operands are not in the table: on
integers stored as floats they are exact, and consumers may depend on that."""
