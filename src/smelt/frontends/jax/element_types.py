"""Element types of fewer than 16 bits, for which ONNX has few operators."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import onnx_ir as ir

from smelt.ir.opset import schema

NARROW = frozenset(
    dtype
    for dtype in ir.DataType
    if dtype.name.startswith(("FLOAT8", "FLOAT4", "INT4", "UINT4", "INT2", "UINT2"))
)
"""What most operators of ONNX do not take."""


def refusal(op_type: str, inputs: Sequence[ir.Value | None], opset: int) -> str:
    """Why ``op_type`` does not take ``inputs``, empty if it does."""
    for place, value in enumerate(inputs):
        if value is None or value.dtype not in NARROW:
            continue
        assert value.dtype is not None
        if str(ir.TensorType(value.dtype)).lower() not in _types(op_type, place, opset):
            return f"{op_type} of ONNX opset {opset} does not take {value.dtype.name.lower()}"
    return ""


@cache
def _types(op_type: str, place: int, opset: int) -> frozenset[str]:
    """The types that ONNX allows for one input."""
    found = schema(op_type, opset)
    if found is None:
        return frozenset()
    formal = found.inputs[min(place, len(found.inputs) - 1)]
    return frozenset(
        text.removeprefix("tensor(").removesuffix(")").lower() for text in formal.types
    )
