"""Networks of PyTorch and the transformers library as PyTorch exports them, layer by layer after the default
pipeline, with symbolic sizes.

``bench/export_architectures.py`` wrote the files (--dims dynamic --width 16 --heads 2 --length 6
--image 32 --words 20 --positions 16), but for
``nn.TransformerEncoder`` by TorchScript, which only takes the length that it saw; metadata and long names were dropped from them. A layer
begins where its Attention stands, or the Softmax of one that is not fused.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import smelt
from smelt.check.verify import verify
from smelt.compiler import optimize_model
from smelt.runtime.interface import interface_of

MODELS = Path(__file__).parent / "models" / "architectures"

NORM = "LayerNormalization"
AFTER = "MatMul Add Add"
MLP = f"MatMul Add Gelu {AFTER}"
QKV = "MatMul Add Split"
ENCODER = f"Attention {AFTER} {NORM} {MLP} {NORM} {QKV}"
GUARDED = ENCODER.replace("Attention", "Attention Where")
GATED = "MatMul Split Sigmoid Mul Mul MatMul Add"
ROTATED = "RotaryEmbedding RotaryEmbedding"
ROTARY = f"Attention MatMul Add RMSNormalization {GATED} RMSNormalization MatMul Split {ROTATED}"
COPIED = "Reshape Expand"
CAPPED = "MatMul Mul Div Tanh Mul Add"
GEMMA2 = (
    "Softmax MatMul Transpose Reshape MatMul RMSNormalization Add RMSNormalization MatMul Split "
    "Gelu Mul MatMul RMSNormalization Add RMSNormalization MatMul Split RotaryEmbedding Reshape "
    f"Transpose RotaryEmbedding {COPIED} {COPIED} Transpose {CAPPED}"
)
"""Capped scores under a mask stay as they are: older runtimes mask before they cap."""
PHI = f"Attention MatMul Add Gelu {AFTER} Add {NORM} {QKV} {ROTATED}"
GPTJ = f"Attention MatMul MatMul Add Gelu {AFTER} Add {NORM} MatMul Split {ROTATED}"
TORCH = f"Attention {AFTER} {NORM} MatMul Add Relu {AFTER} {NORM} {QKV}"
T5 = "Attention MatMul Add RMSNormalization MatMul Relu MatMul Add RMSNormalization MatMul Split"


def _summed(layer: str) -> str:
    """``layer``, of a model that hides the shapes of its sums and has norms right after them."""
    return layer.replace(f"Add {NORM}", f"Sum {NORM}")


LAYERS: dict[str, tuple[int, str]] = {
    "bert_dynamo": (15, _summed(ENCODER)),
    "bert_torchscript": (18, _summed(GUARDED)),
    "gemma2_dynamo": (47, GEMMA2),
    "gptj_dynamo": (18, GPTJ),
    "phi_dynamo": (20, PHI),
    "gpt2_dynamo": (11, ENCODER),
    "gpt2_masked_dynamo": (18, ENCODER),
    "gpt2_masked_torchscript": (20, GUARDED),
    "gpt2_cache_dynamo": (16, ENCODER),
    "gpt2_cache_torchscript": (30, GUARDED),
    "llama_dynamo": (19, ROTARY),
    "llama_cache_dynamo": (23, ROTARY),
    "t5_encoder_dynamo": (32, T5),
    "torch_encoder_dynamo": (16, _summed(TORCH)),
    "torch_encoder_torchscript": (12, _summed(TORCH)),
    "vit_dynamo": (12, ENCODER),
    "vit_torchscript": (16, ENCODER),
    "whisper_encoder_dynamo": (11, ENCODER + " MatMul"),
}
"""The most nodes before the first layer, and the operators of each layer but the last."""

SIZES = {"batch": (2,), "length": (5,), "past": (4,), "total": (5,)}


@pytest.mark.parametrize("name", LAYERS)
def test_each_layer(name: str) -> None:
    most, expected = LAYERS[name]
    model = smelt.load(MODELS / f"{name}.onnx")
    optimize_model(model)
    kinds = [node.op_type for node in model.graph]
    begins = [index for index, kind in enumerate(kinds) if kind in ("Attention", "Softmax")]
    assert len(begins) == 2, f"{2 - len(begins)} of 2 layers have no Attention"
    first = [kind for kind in kinds[begins[0] : begins[1]] if kind not in OF_ALL]
    last = kinds[begins[1] :]
    assert " ".join(first) == expected, "the first layer"
    again = " ".join(last[:8]).replace("Sum", "Add")  # nothing but the last norm reads its sum
    assert expected.replace("Sum", "Add").startswith(again), "the second layer"
    assert begins[0] <= most, "before the first layer"


QUICK = ("bert_torchscript", "gpt2_cache_dynamo", "llama_dynamo")


@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in LAYERS],
)
def test_the_same_numbers(name: str) -> None:
    """A cache and a mask have sizes that belong together, so verification cannot choose them."""
    source = (MODELS / f"{name}.onnx").read_bytes()
    symbols = interface_of(smelt.load(source)).symbols()
    dims = {symbol: SIZES[symbol] for symbol in symbols}
    assert verify(source, smelt.optimize(source), dims=dims).ok


OF_ALL = {"ReduceMax", "Squeeze"}
"""What is computed once, for all layers, and may stand in the first: rows of a mask."""


def test_every_model_is_held_to_something() -> None:
    assert {path.stem for path in MODELS.glob("*.onnx")} == set(LAYERS)
