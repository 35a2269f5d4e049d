"""The worked target: its command stream computes what the quantized model says, band by band."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smelt
from examples.npu import npu
from examples.npu.phases import SRAM
from smelt.errors import ErrorList
from smelt.runtime.runner import open_runner

RNG = np.random.default_rng(11)


class Quantized:
    """A model in DequantizeLinear and QuantizeLinear, written layer by layer."""

    def __init__(self, *shape: int) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.shape, self.zero = shape, 3
        self.value = self.quantize("x")

    def constant(self, array: Any) -> str:
        name = f"c{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op_type: str, *inputs: str, **attributes: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(op_type, inputs, [name], **attributes))
        return name

    def scale(self, scale: float, zero: int, dtype: Any = np.int8) -> tuple[str, str]:
        return self.constant(np.float32(scale)), self.constant(dtype(zero))

    def quantize(self, value: str, scale: float = 0.05) -> str:
        pair = self.scale(scale, self.zero)
        quantized = self.node("QuantizeLinear", value, *pair)
        self.value = self.node("DequantizeLinear", quantized, *pair)
        return self.value

    def matrix(self, *shape: int, per_channel: bool = False) -> str:
        array = RNG.integers(-127, 128, shape).astype(np.int8)
        if not per_channel:
            return self.node("DequantizeLinear", self.constant(array), *self.scale(0.01, 0))
        scales = self.constant(RNG.uniform(0.005, 0.02, shape[0]).astype(np.float32))
        zeros = self.constant(np.zeros(shape[0], np.int8))
        return self.node("DequantizeLinear", self.constant(array), scales, zeros, axis=0)

    def conv(
        self, channels: tuple[int, int], kernel: int, *, relu: bool = True, **more: Any
    ) -> None:
        per_channel = more.pop("per_channel", False)
        group = more.get("group", 1)
        w = self.matrix(channels[1], channels[0] // group, kernel, kernel, per_channel=per_channel)
        bias = self.constant(RNG.uniform(-1, 1, channels[1]).astype(np.float32))
        y = self.node("Conv", self.value, w, bias, **more)
        self.quantize(self.node("Relu", y) if relu else y, 0.2)

    def dense(self, rows: int, columns: int) -> None:
        self.quantize(self.node("MatMul", self.value, self.matrix(rows, columns)), 0.3)

    def done(self, *shape: int) -> onnx.ModelProto:
        info = helper.make_tensor_value_info
        self.nodes.append(helper.make_node("Identity", [self.value], ["y"]))
        graph = helper.make_graph(
            self.nodes,
            "g",
            [info("x", TensorProto.FLOAT, self.shape)],
            [info("y", TensorProto.FLOAT, shape)],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def check(model: onnx.ModelProto, **options: Any) -> smelt.Artifact:
    """At most one step of int8 from what ONNX Runtime computes: its sums are floats."""
    artifact = smelt.compile(model, target=npu, **options)
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    x = RNG.uniform(-4, 4, shape).astype(np.float32)
    step = numpy_helper.to_array(model.graph.initializer[-2]).max()
    (got,), (wanted,) = artifact(x), open_runner(model)(x)
    differ = np.abs(got - wanted)
    assert differ.max() <= 1.01 * step
    assert np.mean(differ > 1e-5) < 0.02
    return artifact


def commands(artifact: smelt.Artifact) -> list[dict[str, Any]]:
    name = next(name for name in artifact.files if name.endswith("commands.jsonl"))
    return [json.loads(line) for line in artifact.files[name].splitlines()]


def network() -> onnx.ModelProto:
    draft = Quantized(1, 3, 32, 32)
    draft.conv((3, 16), 3, pads=[1, 1, 1, 1], per_channel=True)
    draft.conv((16, 16), 3, pads=[1, 1, 1, 1], strides=[2, 2])
    draft.conv((16, 8), 1, relu=False, strides=[2, 2])
    flat = draft.node("Reshape", draft.value, draft.constant(np.array([1, -1], np.int64)))
    draft.quantize(flat, 0.2)
    draft.dense(512, 10)
    return draft.done(1, 10)


def test_a_network_runs_on_the_units_and_the_rest_on_c() -> None:
    artifact = check(network())
    assert artifact.plan.facts["nodes on npu"] == 4
    assert artifact.report["select"]["fired"]["take_unit_with_relu"] == 2
    assert any(name.endswith("_c/part0.c") for name in artifact.files)


def test_loads_overlap_with_the_units() -> None:
    draft = Quantized(1, 16, 40, 40)
    draft.conv((16, 16), 1)
    model = draft.done(1, 16, 40, 40)
    both = [
        sum(
            each.get("cycles", 0)
            for each in smelt.compile(model, target=npu, double_buffer=on).report["each"]
        )
        for on in (True, False)
    ]
    assert both[0] < 0.8 * both[1]


@pytest.mark.parametrize("kernel", [1, 3])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("pad", [0, 1])
def test_bands_of_convolutions_fit_the_scratchpad(kernel: int, stride: int, pad: int) -> None:
    draft = Quantized(1, 8, 41, 37)
    draft.conv((8, 12), kernel, pads=[pad, 0, 0, pad], strides=[stride, stride])
    rows, columns = ((size + pad - kernel) // stride + 1 for size in (41, 37))
    artifact = check(draft.done(1, 12, rows, columns))
    each = commands(artifact)
    assert sum(command["do"] == "conv" for command in each) > 1
    assert artifact.report["each"][1]["sram_bytes"] <= SRAM.size


@pytest.mark.parametrize("more", [{"group": 2}, {"dilations": [2, 2]}])
def test_convolutions_that_the_unit_lacks_run_on_c(more: dict[str, Any]) -> None:
    draft = Quantized(1, 4, 12, 12)
    draft.conv((4, 4), 3, **more)
    side = 12 - 2 * more.get("dilations", [1])[0]
    model = draft.done(1, 4, side, side)
    assert "nodes on npu" in check(model).plan.facts
    with pytest.raises(ErrorList, match=r"no groups|no dilation"):
        smelt.compile(model, target=npu, strict=True)


def test_layers_that_no_single_axis_makes_fit_run_in_boxes_of_rows_and_filters() -> None:
    """All filters take 36 KiB of 32, an image 16 KiB; the weights are packed for the unit."""
    draft = Quantized(1, 64, 16, 16)
    draft.conv((64, 64), 3, pads=[1, 1, 1, 1])
    artifact = check(draft.done(1, 64, 16, 16))
    convs = [each for each in commands(artifact) if each["do"] == "conv"]
    assert {tuple(each["w"]["shape"][1:]) for each in convs} == {(3, 3, 4, 4, 16)}
    loads = [each for each in commands(artifact) if each["do"] == "load"]
    images, filters = (
        [str(each["box"]) for each in loads if len(each["from"]["shape"]) == rank]
        for rank in (5, 6)
    )
    assert len(set(images)) > 1
    assert 1 < len(set(filters)) == len(filters)  # none is loaded twice
    busy = 16 * 16 * 9 * 4 * 16  # a cycle for 16 channels by 4 filters, of 64 by 64
    assert busy < artifact.report["each"][1]["cycles"] < 1.1 * busy


def test_weights_lie_in_dram_in_the_order_of_the_unit() -> None:
    draft = Quantized(1, 3, 8, 8)
    draft.conv((3, 5), 1)
    model = draft.done(1, 5, 8, 8)
    artifact = check(model)
    (conv,) = (each for each in commands(artifact) if each["do"] == "conv")
    load = next(each for each in commands(artifact) if each.get("to") == conv["w"])
    at, (blocks, *_) = load["from"]["at"], conv["w"]["shape"]
    image = np.frombuffer(artifact.files["part1_npu/constants.bin"], np.int8)
    packed = image[at : at + 4 * 16 * blocks].reshape(blocks, 4, 16)
    w = numpy_helper.to_array(model.graph.initializer[2]).reshape(5, 3)
    np.testing.assert_array_equal(packed.reshape(8, 16)[:5, :3], w)
    assert not packed[1, 1:].any()
    assert not packed[:, :, 3:].any()
