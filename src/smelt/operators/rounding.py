"""Tables of the operators that round, and of those that every kernel rounds alike."""

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
"""Operators whose kernels give the same floats in every runtime and at every place of a tensor:
they round once as IEEE 754 says, in the order that ONNX says, or not at all. A vectorized Log
differs from the scalar one that ends a row."""

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
"""Operators whose results are rounded. Sums and products of two are left alone: of numbers that
happen to be integers they are exact, and what comes after may depend on it."""
