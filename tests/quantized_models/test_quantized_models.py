"""Quantized models keep, through ``optimize``, what ONNX Runtime computes on integers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from quantized_models.architectures import ARCHITECTURES
from quantized_models.counting import lost, run_in_the_end
from quantized_models.quantizing import dynamically, random_input, statically
from sampling import sampled

import smelt

TYPES = (("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8"))
BEGINS = dict.fromkeys(ARCHITECTURES, 13) | {
    "transformer": 17,
    "masked transformer": 17,
    "mobilenet": 14,
}
"""The opset from which on ONNX has all operators of it."""

OPTIONS = ("ActivationSymmetric", "DedicatedQDQPair", "AddQDQPairToWeight", "QuantizeBias")


def check(model: onnx.ModelProto) -> None:
    x = random_input(model, 5)
    before, expected = run_in_the_end(model, x)
    after, results = run_in_the_end(smelt.optimize(model), x)
    assert any(name.startswith("Q") and name[1:3] in ("Li", "Ge") for name in before)
    assert lost(before, after) == {}
    for a, b in zip(expected, results, strict=True):
        np.testing.assert_allclose(a, b, atol=STEPS * (np.ptp(a) + 1e-3) / 255)


STEPS = 2
"""Kernels of ONNX Runtime round to integers in ways of their own: outputs may move by steps."""


@pytest.mark.parametrize("name", sampled(ARCHITECTURES, 2))
@pytest.mark.parametrize("symmetric", [False, True])
def test_the_usual_types(name: str, symmetric: bool) -> None:
    check(statically(ARCHITECTURES[name](17), "uint8", "int8", True, ActivationSymmetric=symmetric))


@pytest.mark.parametrize(
    ("name", "opset"),
    [(name, opset) for name in ARCHITECTURES for opset in (13, 17, 21) if opset >= BEGINS[name]],
)
def test_signed_activations(name: str, opset: int) -> None:
    check(statically(ARCHITECTURES[name](opset), "int8", "int8", False))


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize("opset", [17, 23])
@pytest.mark.parametrize("option", OPTIONS)
def test_every_type(
    name: str, types: tuple[str, str], per_channel: bool, opset: int, option: str
) -> None:
    extra = {option: option != "QuantizeBias"}
    check(statically(ARCHITECTURES[name](opset), *types, per_channel, **extra))


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "moves"])
@pytest.mark.parametrize("weights", ["uint8", "int8"])
def test_quantized_as_it_runs(name: str, weights: str) -> None:
    model = dynamically(ARCHITECTURES[name](17), weights, per_channel=weights == "int8")
    x = random_input(model, 5)
    before, expected = run_in_the_end(model, x)
    after, results = run_in_the_end(smelt.optimize(model), x)
    assert lost(before, after) == {}
    np.testing.assert_allclose(expected[0], results[0], rtol=1e-3, atol=1e-3)
