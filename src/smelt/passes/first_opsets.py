"""The opsets from which ONNX has operators that passes make of others."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.ir.rule import Match, Miss

FIRST: Mapping[str, int] = {
    "Attention": 23,
    "LayerNormalization": 17,
    "RMSNormalization": 23,
    "RotaryEmbedding": 23,
}


def not_yet(m: Match, op_type: str) -> Miss | None:
    """A miss that names the opset, if that of the model does not have the operator."""
    first = FIRST[op_type]
    return Miss(f"{op_type} begins with opset {first}", opset=first) if m.opset < first else None
