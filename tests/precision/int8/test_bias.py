"""The mean error of rounded weights moves into a bias, where that lowers the error."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

import smelt
from smelt.precision.int8 import opened
from smelt.precision.int8.bias import bias_shift, channel_means
from smelt.precision.int8.linear import weight_blocks, weight_codes
from smelt.runtime.onnxruntime import OnnxRuntime

NODES = {
    "Conv": ("float[B,4,5,5] x", "y = Conv(x, w, b)", (6, 4, 3, 3)),
    "Conv in groups": ("float[B,4,5,5] x", "y = Conv<group=2>(x, w, b)", (6, 2, 3, 3)),
    "Gemm": ("float[B,4] x", "y = Gemm(x, w, b)", (4, 6)),
    "Gemm of a transposed weight": ("float[B,4] x", "y = Gemm<transB=1>(x, w, b)", (6, 4)),
}


def model(name: str, constant_bias: bool = True) -> Any:
    port, body, shape = NODES[name]
    more = "" if constant_bias else ", float[6] b"
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> f ({port}{more}) => (float y) {{ {body} }}'
    )
    del proto.graph.output[0].type.tensor_type.shape.dim[:]
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    rng = np.random.default_rng(1)
    arrays = {
        "w": rng.normal(0, 0.3, shape),
        **({"b": rng.normal(size=6)} if constant_bias else {}),
    }
    for key, array in arrays.items():
        tensor = onnx.numpy_helper.from_array(array.astype(np.float32), key)
        proto.graph.initializer.append(tensor)
    return smelt.load(proto)


def samples(name: str, count: int = 4) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(2)
    shape = (2, 4, 5, 5) if name.startswith("Conv") else (2, 4)
    return [[rng.normal(3, 1, shape).astype(np.float32)] for _ in range(count)]


@pytest.mark.parametrize("block", [0, 2])
@pytest.mark.parametrize("name", NODES)
def test_a_constant_activation_gives_the_result_of_the_float_weights(name: str, block: int) -> None:
    work = model(name)
    (node,) = work.graph
    weight = work.graph.initializers["w"].const_value.numpy()
    if block and name.startswith("Conv"):
        pytest.skip("int4 is for matrices")
    channel = 1 if name == "Gemm" else 0
    codes = (
        weight_blocks(weight, 1 - channel, block)
        if block
        else weight_codes(weight, channel, bits=3)  # coarse, so that the error shows
    )
    x = np.ones((2, 4, 5, 5) if name.startswith("Conv") else (2, 4), np.float32)
    x = x * np.array([1, -2, 3, 4], np.float32).reshape(1, 4, *[1] * (x.ndim - 2))
    (expected,) = OnnxRuntime(work)(x)
    mean = channel_means(work, ["y"], [[x]])["y"]
    shift = bias_shift(node, weight, codes, mean)
    axis = codes.axis
    scale = codes.scale.astype(np.float32)
    scale = (
        np.repeat(scale, block, axis)
        if block
        else scale.reshape([-1 if index == axis else 1 for index in range(weight.ndim)])
    )
    numbers = codes.codes.astype(np.float32) * scale
    bias = work.graph.initializers["b"].const_value.numpy()
    for key, array in {"w": numbers, "b": (bias + shift).astype(np.float32)}.items():
        work.graph.initializers[key].const_value = ir.tensor(array)
    (made,) = OnnxRuntime(work)(x)
    np.testing.assert_allclose(np.asarray(made), np.asarray(expected), rtol=2e-5, atol=1e-5)


def test_products_without_a_constant_bias_have_no_means() -> None:
    data = [[*sample, np.zeros(6, np.float32)] for sample in samples("Gemm")]
    assert channel_means(model("Gemm", constant_bias=False), ["y"], data) == {}
    assert list(channel_means(model("Gemm"), ["y"], samples("Gemm"))) == ["y"]
    assert channel_means(model("Gemm"), ["other"], samples("Gemm")) == {}


@pytest.mark.parametrize("attribute", ["transA=1", "alpha=0.5", "beta=2.0"])
def test_a_gemm_that_scales_or_transposes_has_no_means(attribute: str) -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> f (float[4,4] x) => (float[4,6] y) '
        f"<float[4,6] w = {{{','.join('1' * 24)}}}, float[6] b = {{1,2,3,4,5,6}}> "
        f"{{ y = Gemm<{attribute}>(x, w, b) }}"
    )
    assert channel_means(smelt.load(proto), ["y"], [[np.ones((4, 4), np.float32)]]) == {}


@pytest.mark.parametrize("name", ["Conv", "Conv in groups"])
def test_the_error_is_no_larger_than_without_correction(name: str, monkeypatch: Any) -> None:
    data = [{"x": sample[0]} for sample in samples(name, 8)]
    settings: dict[str, Any] = {"within": "50%", "activations": "float", "per_tensor": True}
    settings["weight_bits"] = 8
    corrected = smelt.quantize(model(name), data, **settings)
    monkeypatch.setattr(opened, "channel_means", lambda *_: {})
    plain = smelt.quantize(model(name), data, **settings)
    assert corrected.error < plain.error
    monkeypatch.undo()
    monkeypatch.setattr(opened, "channel_means", lambda *_: {"y": np.full(4, 1e3)})
    wrong = smelt.quantize(model(name), data, **settings)
    assert wrong.error == plain.error  # a correction that errs more is not kept
