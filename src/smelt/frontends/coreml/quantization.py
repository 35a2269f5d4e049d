"""Readers of operators that quantize and dequantize activations."""

from __future__ import annotations

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads
from smelt.frontends.coreml.types import WORDS


@reads("quantize")
def _quantize(call: Call) -> ir.Value:
    """Return round(input / scale) + zero_point, clipped to 8 bits."""
    word = call.word("output_dtype")
    if word not in ("int8", "uint8"):
        raise call.refused(f"it quantizes to {word!r}")
    axis, zero_point = _axis(call), call.optional("zero_point")
    if zero_point is None:
        kind = int(WORDS[word])
        return call.op(
            "QuantizeLinear", call.value("input"), call.value("scale"), axis=axis, output_dtype=kind
        )
    return call.op(
        "QuantizeLinear", call.value("input"), call.value("scale"), zero_point, axis=axis
    )


@reads("dequantize")
def _dequantize(call: Call) -> ir.Value:
    """Return scale * (input - zero_point)."""
    return call.op(
        "DequantizeLinear",
        call.value("input"),
        call.value("scale"),
        call.optional("zero_point"),
        axis=_axis(call),
    )


def _axis(call: Call) -> int | None:
    """Return the axis along which scales differ; None if there is a single scale."""
    if call.rank(call.value("scale")) == 0:
        return None
    return call.axis("axis", call.rank(call.value("input")))
