"""Large weights in a model stay in its file; protobuf itself parses unusual encodings."""

from __future__ import annotations

from pathlib import Path
from random import Random

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from frontends.onnx.mutations import mutate
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper

import smelt
from smelt.errors import SmeltError
from smelt.frontends.onnx import embedded, load, save, wire
from smelt.ir import scope

ARRAYS = [
    np.random.default_rng(0).standard_normal((130, 128), np.float32),
    np.arange(40_000).astype(ml_dtypes.bfloat16),
    np.tile(np.array([-8, 7, 3, 1], ml_dtypes.int4), 40_000),
    np.tile(np.array([[True, False]]), (40_000, 1)),
    np.arange(70_000, dtype=np.uint8),
    np.arange(9_000, dtype=np.float64),
    np.array(2.5),
    np.zeros((0, 3), np.int8),
]


@pytest.fixture(autouse=True)
def small_models_are_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "SMALLEST_MAPPED", 0)
    monkeypatch.setattr("smelt.frontends.onnx.read.SMALLEST_MAPPED", 0)


def tensor(array: np.ndarray, name: str) -> TensorProto:
    found = numpy_helper.from_array(array, name)
    found.doc_string = f"about {name}"
    found.metadata_props.add(key="key", value=name)
    if name == "w0":
        found.data_location = TensorProto.DEFAULT  # as onnx.load leaves it
    return found


def everywhere() -> onnx.ModelProto:
    """Weights as initializers, in a Constant, in both branches of an If and in a function."""
    weights = [tensor(array, f"w{i}") for i, array in enumerate(ARRAYS)]
    branches = {}
    for place in ("then_branch", "else_branch"):
        constant = helper.make_node("Constant", [], ["t"], value=tensor(ARRAYS[0], place))
        held = tensor(ARRAYS[0], f"{place}.held")
        product = helper.make_node("Mul", ["t", held.name], ["p"])
        output = helper.make_tensor_value_info("p", TensorProto.FLOAT, [130, 128])
        branches[place] = helper.make_graph([constant, product], place, [], [output], [held])
    nodes = [
        helper.make_node("If", ["c"], ["y"], name="if", **branches),
        helper.make_node("Weight", [], ["z"], name="call", domain="own"),
        *(helper.make_node("Identity", [w.name], [f"{w.name}.out"]) for w in weights),
    ]
    outputs = [
        helper.make_tensor_value_info("y", TensorProto.FLOAT, [130, 128]),
        helper.make_tensor_value_info("z", TensorProto.FLOAT, [130, 128]),
        *(helper.make_tensor_value_info(f"{w.name}.out", w.data_type, w.dims) for w in weights),
    ]
    inputs = [helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    imports = [helper.make_opsetid("", 23), helper.make_opsetid("own", 1)]
    body = helper.make_node("Constant", [], ["t"], value=tensor(ARRAYS[0], "in function"))
    function = helper.make_function("own", "Weight", [], ["t"], [body], imports[:1])
    return helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=11)


def held(model: ir.Model) -> dict[str, ir.TensorProtocol]:
    found: dict[str, ir.TensorProtocol] = {}
    for graph in scope.graphs(model):
        for name, value in graph.initializers.items():
            assert value.const_value is not None
            found[name] = value.const_value
        for node in graph:
            if node.op_type == "Constant":
                weight = node.attributes["value"].as_tensor()
                found[weight.name or ""] = weight
    return found


def parsed(data: bytes) -> onnx.ModelProto:
    proto = onnx.ModelProto()
    proto.ParseFromString(data)
    return proto


def test_weights_are_views_of_what_holds_them() -> None:
    data = everywhere().SerializeToString()
    expected = held(load(parsed(data), as_is=True))
    found = held(load(data, as_is=True))
    assert found.keys() == expected.keys()
    whole = np.frombuffer(data, np.uint8)
    for name, weight in found.items():
        twin = expected[name]
        assert (weight.dtype, weight.shape) == (twin.dtype, twin.shape)
        assert (weight.doc_string, weight.metadata_props) == (twin.doc_string, twin.metadata_props)
        assert weight.tobytes() == twin.tobytes()
        if weight.dtype.bitwidth >= 8:
            assert np.shares_memory(weight.numpy(), whole) == (weight.nbytes >= embedded.LARGE), (
                name
            )


def test_a_file_comes_back_byte_for_byte_and_may_be_written_over(tmp_path: Path) -> None:
    path, other = tmp_path / "m.onnx", tmp_path / "other.onnx"
    path.write_bytes(everywhere().SerializeToString())
    model = load(path, as_is=True)
    save(load(parsed(path.read_bytes()), as_is=True), other)
    save(model, path)
    assert path.read_bytes() == other.read_bytes()
    save(smelt.load(parsed(other.read_bytes())), path)
    path.unlink()
    save(model, path)
    assert path.read_bytes() == other.read_bytes()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["m.onnx", "other.onnx"]


def test_unaligned_weights_run(tmp_path: Path) -> None:
    weight = ARRAYS[0]
    for padding in range(4):
        proto = onnx.parser.parse_model(
            '<ir_version: 10, opset_import: ["" : 20]>'
            "g (float[N,130] x) => (float[N,128] y) { y = MatMul(x, w) }"
        )
        proto.doc_string = " " * padding
        proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
        data = proto.SerializeToString()
        x = np.ones((2, 130), np.float32)
        for target in ("host", "onnx"):
            (y,) = smelt.compile(data, target=target)(x)
            np.testing.assert_allclose(y, x @ weight, rtol=1e-5, atol=1e-4)


def code_of(source: bytes | onnx.ModelProto) -> str:
    try:
        load(source)
    except SmeltError as error:
        return error.code
    return ""


def damaged() -> dict[str, onnx.ModelProto]:
    """Return models with a large tensor that contradicts its dims, its type or another field."""
    found = {}
    names = ("short", "long", "twice", "typed", "text", "bool", "beside", "marked", "no type")
    for name in names:
        proto = everywhere()
        found[name] = proto
        weight = proto.graph.initializer[4 if name == "bool" else 0]
        match name:
            case "short":
                weight.raw_data = weight.raw_data[:-4]
            case "long":
                weight.raw_data += b"abcd"
            case "twice":
                proto.graph.initializer.append(weight)
            case "typed":
                weight.float_data.append(1)
            case "text":
                weight.data_type = TensorProto.STRING
            case "bool":
                weight.data_type = TensorProto.BOOL
            case "beside" | "marked":
                location = "m.data" if name == "beside" else "0" * 32
                weight.external_data.add(key="location", value=location)
                weight.data_location = TensorProto.EXTERNAL
            case "no type":
                weight.data_type = 0
    return found


@pytest.mark.parametrize("name", damaged())
def test_damage_is_refused_with_the_same_code(name: str) -> None:
    proto = damaged()[name]
    code = code_of(proto)
    assert code
    assert code_of(proto.SerializeToString()) == code


def test_two_tensors_in_one_attribute_are_one_as_protobuf_has_it() -> None:
    constant = onnx.AttributeProto(name="value", type=onnx.AttributeProto.TENSOR)
    constant.t.CopyFrom(tensor(ARRAYS[0], "a"))
    second = onnx.AttributeProto()
    second.t.raw_data = ARRAYS[0][::-1].tobytes()
    for extra in (second, onnx.AttributeProto()):
        data = constant.SerializeToString() + extra.SerializeToString()
        assert merged(data) == parsed_attribute(data).t.raw_data


def merged(attribute: bytes) -> bytes:
    """Return the numbers of a Constant with this attribute after loading."""
    node = onnx.NodeProto(op_type="Constant", output=["y"]).SerializeToString()
    node += wire.head(5, len(attribute)) + attribute
    proto = onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]> g () => (float[130,128] y) { y = Identity(y) }'
    )
    del proto.graph.node[:]
    graph = proto.graph.SerializeToString() + wire.head(1, len(node)) + node
    proto.ClearField("graph")
    data = proto.SerializeToString() + wire.head(7, len(graph)) + graph
    (weight,) = held(load(data, as_is=True)).values()
    return weight.tobytes()


def parsed_attribute(data: bytes) -> onnx.AttributeProto:
    proto = onnx.AttributeProto()
    proto.ParseFromString(data)
    return proto


@pytest.mark.parametrize("seed", range(40))
def test_random_damage_is_judged_as_protobuf_reads_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Damage of fields, and of bytes, with every raw datum walked over that is not empty."""
    monkeypatch.setattr(embedded, "LARGE", 1)
    random = Random(seed)
    proto = everywhere()
    for weight in proto.graph.initializer:
        weight.raw_data = weight.raw_data[:16]
        del weight.dims[:]
        bits = ir.DataType(weight.data_type).bitwidth
        weight.dims.append(len(weight.raw_data) * 8 // bits)
    mutate(proto, random)
    data = bytearray(proto.SerializeToString())
    for _ in range(seed % 3):
        data[random.randrange(min(4000, len(data)))] = random.randrange(256)
    try:
        whole = parsed(bytes(data))
    except DecodeError:
        assert code_of(bytes(data)) == "E301"
        return
    assert code_of(bytes(data)) == code_of(whole)
