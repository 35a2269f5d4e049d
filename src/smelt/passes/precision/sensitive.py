"""Operators whose results lose too much in a half type, with the reason.

The automatic choice of ``--fp16`` and ``--bf16`` reads this table.
"""

from __future__ import annotations

from collections.abc import Mapping

NORM, SOFTMAX, SUM = "a norm", "a softmax", "a sum of many numbers"
STEEP, CHOICE = "a steep function", "a choice by the order of numbers"
ANGLE, WHOLE = "an angle", "arithmetic of whole numbers"

SENSITIVE: Mapping[str, str] = {
    **dict.fromkeys(
        (
            *("GroupNormalization", "InstanceNormalization", "LayerNormalization"),
            *("LpNormalization", "LRN", "MeanVarianceNormalization", "RMSNormalization"),
        ),
        NORM,
    ),
    **dict.fromkeys(("LogSoftmax", "Softmax", "SoftmaxCrossEntropyLoss"), SOFTMAX),
    **dict.fromkeys(
        (
            *("CumSum", "GlobalAveragePool", "GlobalLpPool", "ReduceL1", "ReduceL2"),
            *("ReduceLogSum", "ReduceLogSumExp", "ReduceMean", "ReduceProd", "ReduceSum"),
            *("ReduceSumSquare", "NegativeLogLikelihoodLoss"),
        ),
        SUM,
    ),
    **dict.fromkeys(("Exp", "Log", "Pow", "Reciprocal", "Sqrt", "Tan", "Sinh", "Cosh"), STEEP),
    **dict.fromkeys(
        ("ArgMax", "ArgMin", "Hardmax", "MaxRoiPool", "NonMaxSuppression", "RoiAlign", "TopK"),
        CHOICE,
    ),
}
"""Operators that stay in float32, and why."""

READ_EXACTLY: Mapping[str, str] = {
    **dict.fromkeys(("Cos", "Sin"), ANGLE),
    **dict.fromkeys(("Ceil", "Floor", "Mod", "Round"), WHOLE),
}
"""Operators whose operands are computed in float32, and why: a small error there changes all."""
