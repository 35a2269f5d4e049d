"""Loading and saving preserve a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.frontends.onnx import load, raise_opset, restore_defaults, save, to_proto
from smelt.ir import text
from smelt.runtime.runner import open_runner

PARSE = onnx.parser.parse_model
MODEL = PARSE(
    '<ir_version: 10, opset_import: ["" : 20]> g (float[N,4] x) => (float[N,4] y) '
    "<float[4] w = {1,2,3,4}> { a = Mul(x, w) y = Relu(a) }"
)


def test_a_path_bytes_a_proto_and_an_ir_model_are_one(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(MODEL.SerializeToString())
    texts = {
        text.canonical(load(source))
        for source in (path, str(path), path.read_bytes(), MODEL, ir.from_proto(MODEL))
    }
    assert len(texts) == 1


def test_saving_loads_again_and_is_deterministic(tmp_path: Path) -> None:
    first, second = tmp_path / "a.onnx", tmp_path / "b.onnx"
    save(load(MODEL), first)
    save(load(MODEL), second)
    assert first.read_bytes() == second.read_bytes()
    onnx.checker.check_model(str(first), full_check=True)


def test_external_weights(tmp_path: Path) -> None:
    weights = ",".join(map(str, range(64)))
    source = PARSE(
        '<ir_version: 10, opset_import: ["" : 20]> g (float[N,64] x) => (float[N,64] y) '
        f"<float[64] w = {{{weights}}}> {{ y = Mul(x, w) }}"
    )
    path = save(load(source), tmp_path / "m.onnx", external_data=True)
    assert (tmp_path / "m.onnx.data").exists()
    assert text.canonical(load(path)) == text.canonical(load(source))
    assert to_proto(load(path)).graph.initializer[0].data_location == onnx.TensorProto.DEFAULT


def test_a_failed_save_leaves_the_old_file(tmp_path: Path) -> None:
    with pytest.raises(SmeltError):
        save(load(MODEL), tmp_path / "no" / "folder.onnx")
    path = tmp_path / "m.onnx"
    path.write_bytes(b"old")
    path.chmod(0o444)
    assert path.read_bytes() == b"old"


def test_defaults_are_inputs_not_constants() -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(MODEL)
    proto.graph.input.append(onnx.helper.make_tensor_value_info("w", 1, [4]))
    model = load(proto)
    assert [value.name for value in model.graph.inputs] == ["x", "w"]
    assert not model.graph.initializers
    assert model.graph.inputs[1].const_value is None
    again = to_proto(model)
    assert [tensor.name for tensor in again.graph.initializer] == ["w"]
    assert not model.graph.initializers
    restore_defaults(model)
    assert list(model.graph.initializers) == ["w"]


def test_functions_are_inlined_unless_kept() -> None:
    proto = PARSE(
        '<ir_version: 10, opset_import: ["" : 20, "f" : 1]> g (float[4] x) => (float[4] y) { y = f.F(x) }'
        '<domain: "f", opset_import: ["" : 20]> F (a) => (b) { c = Neg(a) b = Abs(c) }'
    )
    assert [node.op_type for node in load(proto).graph] == ["Neg", "Abs"]
    kept = load(proto, inline=False)
    assert [node.op_type for node in kept.graph] == ["F"]
    assert len(kept.functions) == 1


def test_nodes_in_the_wrong_order_are_sorted() -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(MODEL)
    nodes = list(proto.graph.node)
    del proto.graph.node[:]
    proto.graph.node.extend(reversed(nodes))
    assert [node.op_type for node in load(proto).graph] == ["Mul", "Relu"]


def test_every_node_gets_a_name_of_its_own() -> None:
    proto = onnx.ModelProto()
    proto.CopyFrom(MODEL)
    for node in proto.graph.node:
        node.name = "same"
    assert [node.name for node in load(proto).graph] == ["same", "same_0"]


OLD = {
    "clip": (9, "y = Clip<min = -1.0, max = 0.5>(x)"),
    "clip without bounds": (9, "y = Clip(x)"),
    "pad": (10, "y = Pad<pads = [0,1,1,0], value = 2.0>(x)"),
    "slice": (9, "y = Slice<starts = [1], ends = [3], axes = [1]>(x)"),
    "top k": (9, "y, i = TopK<k = 2, axis = 1>(x)"),
    "squeeze": (12, "u = Unsqueeze<axes = [0]>(x) y = Squeeze<axes = [0]>(u)"),
    "sum": (12, "y = ReduceSum<axes = [1], keepdims = 0>(x)"),
    "mean": (17, "y = ReduceMean<axes = [-1]>(x)"),
    "split": (12, "y, z = Split<axis = 1, split = [1, 3]>(x)"),
    "even split": (17, "y, z = Split<axis = 1>(x)"),
    "softmax over the last": (12, "y = Softmax<axis = 1>(x)"),
    "softmax over all": (12, "y = Softmax<axis = 0>(x)"),
    "dropout": (9, "y, m = Dropout<ratio = 0.5>(x)"),
    "upsample": (7, "y = Upsample<scales = [1.0, 2.0]>(x)"),
    "scatter": (
        10,
        "i = Constant<value = int64[1,1] {1}>() u = Constant<value = float[1,1] {9.0}>() y = Scatter<axis = 1>(x, i, u)",
    ),
    "inside a branch": (
        12,
        "c = Constant<value = bool {1}>() y = If(c) <then_branch = t () => (float t) "
        "{ t = ReduceSum<keepdims = 0>(x) }, else_branch = e () => (float e) { e = ReduceMax<keepdims=0>(x) }>",
    ),
}


RAISED = [(to, *case) for to in (13, 18, 21) for case in OLD.values() if case[0] <= to]


@pytest.mark.parametrize(("to", "opset", "body"), RAISED)
def test_raising_the_opset_keeps_the_numbers(to: int, opset: int, body: str) -> None:
    proto = PARSE(
        f'<ir_version: 4, opset_import: ["" : {opset}]> g (float[3,4] x) => (float[a,b] y) {{ {body} }}'
    )
    proto.graph.output[0].type.tensor_type.ClearField("shape")
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    expected = open_runner(ir.from_proto(proto))(x)
    raised = load(proto, opset=to)
    assert raised.opset_imports[""] == to
    np.testing.assert_array_equal(open_runner(raised)(x)[0], expected[0])


def test_opsets_that_cannot_be_raised_are_refused_and_stay() -> None:
    model = load(MODEL)
    for goal in (18, 10**6):
        with pytest.raises(SmeltError) as caught:
            raise_opset(model, goal)
        assert caught.value.code == "E230"
    assert model.opset_imports[""] == 20


def test_a_normalization_that_trains_is_not_raised() -> None:
    """Before opset 14 the number of outputs means training; from 14 on an attribute does."""
    training = text.parse(
        "g (float[2,3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[2,3] y) "
        "{ y, mean, var = BatchNormalization(x, s, b, m, v) }",
        13,
    )
    with pytest.raises(SmeltError) as caught:
        raise_opset(training, 15)
    assert caught.value.code == "E230"


@pytest.mark.parametrize(("function", "model"), [(13, 20), (20, 13)])
def test_a_function_of_another_opset_whose_operators_are_the_same_is_taken(
    function: int, model: int
) -> None:
    proto = PARSE(
        f'<ir_version: 10, opset_import: ["" : {model}, "f" : 1]> g (float[3,4] x) => (float[3,4] y) '
        f'{{ y = f.F(x) }} <domain: "f", opset_import: ["" : {function}]> '
        "F (a) => (b) { c = Softmax(a) d = Relu(c) b = Add(d, a) }"
    )
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    expected = np.exp(x) / np.exp(x).sum(-1, keepdims=True) + x
    np.testing.assert_allclose(open_runner(smelt.optimize(proto))(x)[0], expected, rtol=1e-5)
