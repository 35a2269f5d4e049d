"""What ONNX Runtime fuses by itself it still fuses after ``optimize``, or finds fused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest
from quantized_models.counting import open_in_the_end

import smelt

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
EXPORTED = Path(__file__).parent / "models"
PATHS = [
    *sorted(EXPORTED.glob("*.onnx")),
    *(LIGHT / f"light_{name}.onnx" for name in ("squeezenet", "shufflenet", "inception_v2")),
]

PARTS = (
    *("Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Reciprocal", "Erf", "Tanh", "Sigmoid", "Clip"),
    *("Relu", "LeakyRelu", "BatchNormalization", "Pad", "Cast", "ReduceMean", "Transpose"),
)
"""What fused operators are made of, or take in."""

KINDS = {
    "convolution": ("Conv", "FusedConv"),
    "Gelu": ("Gelu", "BiasGelu", "FastGelu", "QuickGelu"),
    "normalization": (
        *("LayerNormalization", "SkipLayerNormalization", "InstanceNormalization"),
        *("RMSNormalization", "SimplifiedLayerNormalization", "SkipSimplifiedLayerNormalization"),
    ),
    "attention": ("Attention", "MultiHeadAttention"),
}

MASKS = {"torchscript_bert": {"Mul": 3}}
"""What stands in an exported model for the mask that all its attentions share, and only once."""


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_nothing_falls_apart(path: Path) -> None:
    source = onnx.load(path)
    before, _ = open_in_the_end(source)
    after, _ = open_in_the_end(smelt.optimize(source))
    more = {part: after[part] for part in PARTS if after[part] > before[part]}
    assert more == MASKS.get(path.stem, {})
    first, second = _by_kind(before), _by_kind(after)
    assert {kind: second[kind] for kind in KINDS if second[kind] < first[kind]} == {}


def _by_kind(counts: Counter[str]) -> Counter[str]:
    return Counter({kind: sum(counts[name] for name in names) for kind, names in KINDS.items()})
