"""Channels between two convolutions get weights of like magnitude; floats compute the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser
import onnx_ir as ir
import pytest

import smelt
from smelt.ir.cloning import clone_model
from smelt.precision.int8.equalize import equalize
from smelt.runtime.onnxruntime import OnnxRuntime

W, V = (8, 3, 3, 3), (5, 8, 1, 1)
FIRST = "c = Conv(x, w, b)"
EQUALIZED: dict[str, tuple[str, tuple[int, ...]]] = {
    "directly": (f"{FIRST} y = Conv(c, v)", V),
    "through Relu and MaxPool": (
        f"{FIRST} r = Relu(c) p = MaxPool<kernel_shape=[2,2]>(r) y = Conv(p, v)", V),
    "through LeakyRelu and a mean": (
        f"{FIRST} r = LeakyRelu(c) p = GlobalAveragePool(r) y = Conv(p, v)", V),
    "without bias": ("c = Conv(x, w) y = Conv(c, v)", V),
    "a depthwise second": (f"{FIRST} y = Conv<group=8>(c, v)", (8, 1, 3, 3)),
    "a depthwise second with two filters a channel": (
        f"{FIRST} y = Conv<group=8>(c, v)", (16, 1, 3, 3)),
}  # fmt: skip
KEPT: dict[str, tuple[str, tuple[int, ...]]] = {
    "Sigmoid between": (f"{FIRST} r = Sigmoid(c) y = Conv(r, v)", V),
    "Clip between": (f"{FIRST} r = Clip(c, , six) y = Conv(r, v)", V),
    "another reader": (f"{FIRST} a = Conv(c, v) m = ReduceMax(c) y = Add(a, m)", V),
    "another reader behind Relu": (
        f"{FIRST} r = Relu(c) a = Conv(r, v) m = ReduceMax(r) y = Add(a, m)", V),
    "a weight that is read twice": (
        "c = Conv(x, w, b) d = Conv(x, w) p = Conv(c, v) q = ReduceMax(d) y = Add(p, q)", V),
    "groups of several channels": (f"{FIRST} y = Conv<group=2>(c, v)", (4, 4, 1, 1)),
    "a computed weight": (f"{FIRST} u = Exp(v) y = Conv(c, u)", V),
}  # fmt: skip


def model(body: str, second: tuple[int, ...], outputs: str = "float[B,N,H,W] y") -> Any:
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["" : 17]> f (float[B,3,6,6] x) => ({outputs}) {{ {body} }}'
    )
    rng = np.random.default_rng(1)
    arrays = {"w": rng.normal(size=W), "b": rng.normal(size=8), "v": rng.normal(size=second)}
    arrays["w"] *= np.geomspace(1e-3, 1e3, 8).reshape(-1, 1, 1, 1)
    arrays["w"][3] = 0  # has no magnitude to equalize
    arrays["six"] = np.asarray(6)
    for name, array in arrays.items():
        if name in body:
            tensor = onnx.numpy_helper.from_array(array.astype(np.float32), name)
            proto.graph.initializer.append(tensor)
    return smelt.load(proto)


def x(count: int = 2) -> np.ndarray:
    return np.random.default_rng(2).normal(size=(count, 3, 6, 6)).astype(np.float32)


@pytest.mark.parametrize(("body", "second"), EQUALIZED.values(), ids=EQUALIZED)
def test_floats_compute_the_same(body: str, second: tuple[int, ...]) -> None:
    work = model(body, second)
    expected = np.asarray(OnnxRuntime(clone_model(work))(x())[0])
    assert equalize(work) == 1
    (made,) = OnnxRuntime(clone_model(work))(x())
    np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-6, atol=1e-6 * expected.std())
    convolutions = [node for node in work.graph if node.op_type == "Conv"]
    front = convolutions[0].inputs[1].const_value.numpy()
    behind = convolutions[1].inputs[1].const_value.numpy()
    p = np.abs(front).max(axis=(1, 2, 3))
    q = np.abs(behind if behind.shape[1] == 1 else np.moveaxis(behind, 1, 0))
    q = q.reshape(8, -1).max(axis=1)
    assert p[3] == 0
    ratio = np.delete(p, 3) / np.delete(q, 3)
    assert (ratio <= 2.01).all()
    assert (ratio >= 0.49).all()
    assert equalize(work) == 0  # a second time changes nothing


@pytest.mark.parametrize(("body", "second"), KEPT.values(), ids=KEPT)
def test_keeps(body: str, second: tuple[int, ...]) -> None:
    assert equalize(model(body, second)) == 0


def test_keeps_a_result_that_is_an_output() -> None:
    outputs = "float[B,N,H,W] y, float[B,8,4,4] c"
    assert equalize(model(f"{FIRST} y = Conv(c, v)", V, outputs)) == 0


def test_a_channel_whose_bias_would_become_infinite_stays() -> None:
    work = model(*EQUALIZED["through Relu and MaxPool"])
    node = next(node for node in work.graph if node.op_type == "Conv")
    bias = np.zeros(8, np.float32)
    bias[0] = 1e38
    weight = node.inputs[1].const_value.numpy().copy()
    weight[0] *= np.float32(2.0**-30)
    node.inputs[1].const_value, node.inputs[2].const_value = ir.tensor(weight), ir.tensor(bias)
    assert equalize(work) == 1
    assert node.inputs[2].const_value.numpy()[0] == bias[0]
    np.testing.assert_array_equal(node.inputs[1].const_value.numpy()[0], weight[0])


def test_one_scale_per_weight_errs_less_on_equalized_channels() -> None:
    data = [{"x": x(4) + number} for number in range(6)]
    settings: dict[str, Any] = {"within": 1.0, "activations": "static", "per_tensor": True}
    body, second = EQUALIZED["through Relu and MaxPool"]
    plain = smelt.quantize(model(body, second), data, method="nearest", **settings)
    equal = smelt.quantize(model(body, second), data, method="equalized", **settings)
    best = smelt.quantize(model(body, second), data, **settings)
    assert equal.error < plain.error
    assert best.method == "equalized"
