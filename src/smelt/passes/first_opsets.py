"""The first opset of each ONNX operator that passes fuse other operators into."""

from __future__ import annotations

from collections.abc import Mapping

from smelt.ir.rule import Match, Miss

FIRST: Mapping[str, int] = {
    "Attention": 23,
    "LayerNormalization": 17,
    "RMSNormalization": 23,
    "RotaryEmbedding": 23,
}


def opset_miss(m: Match, op_type: str) -> Miss | None:
    """Return a Miss that names the needed opset if the model's opset lacks ``op_type``, else
    None."""
    first = FIRST[op_type]
    return (
        Miss(f"ONNX has {op_type} from opset {first} on", opset=first) if m.opset < first else None
    )
