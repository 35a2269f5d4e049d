"""Models are written piece by piece, and byte for byte as protobuf writes them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from google.protobuf.message import Message
from onnx import TensorProto, helper, numpy_helper
from small_models import HEADER

from smelt.errors import ResourceLimit
from smelt.frontends.onnx import encode as encoding
from smelt.frontends.onnx.encode import encode
from smelt.frontends.onnx.map_types import proto_of

TEXTS: Mapping[str, str] = {
    "without weights": f"{HEADER} g (float[2] x) => (float[2] y) {{ y = Neg(x) }}",
    "weights among the nodes": f"""{HEADER}
        g (float[2] x) => (float[2] y) <float[2] a = {{1, 2}}, int64[1] b = {{3}}>
        {{ c = Constant<value = float[2] {{4, 5}}>()  d = Add(x, a)  e = Mul(d, c)
           s = Constant<value_ints = [2]>()  y = Reshape(e, s) }}""",
    "a weight in a branch of a branch": f"""{HEADER}
        g (float[2] x, bool c) => (float[2] y) {{
            y = If (c) <
                then_branch = t () => (float[2] p) <float[2] w = {{1, 2}}> {{
                    p = If (c) <then_branch = u () => (float[2] q) <float[2] v = {{3, 4}}>
                                    {{ q = Add(v, w) }},
                                else_branch = o () => (float[2] r) {{ r = Add(x, w) }}>
                }},
                else_branch = e () => (float[2] z) {{ z = Neg(x) }}>
        }}""",
    "a constant in a function": f"""{HEADER.replace("]>", ', "f" : 1]>')}
        g (float[2] x) => (float[2] y) {{ y = f.F(x) }}
        <domain: "f", opset_import: ["" : 18]>
        F (a) => (c) {{ b = Constant<value = float[2] {{4, 5}}>()  c = Add(a, b) }}""",
}


def tensors(message: Message) -> Iterator[onnx.TensorProto]:
    """Yield each tensor in ``message`` and the messages inside it."""
    if isinstance(message, onnx.TensorProto):
        yield message
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for item in [value] if isinstance(value, Message) else value:
                yield from tensors(item)


@pytest.mark.parametrize("streamed", [0, 9, 1 << 16])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_the_bytes_are_those_of_protobuf(text, streamed, monkeypatch):
    monkeypatch.setattr(encoding, "STREAMED", streamed)
    proto = onnx.parser.parse_model(text)
    proto.metadata_props.add(key="k", value="v")
    for tensor in proto.graph.initializer:
        tensor.doc_string = "a weight"
    for tensor in tensors(proto):
        raw = numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name)
        for name in ("float_data", "int64_data"):
            tensor.ClearField(name)
        tensor.raw_data, tensor.name = raw.raw_data, tensor.name or "t"
    expected = proto_of(ir.from_proto(proto)).SerializeToString(deterministic=True)
    stream = io.BytesIO()
    encoded = encode(ir.from_proto(proto))
    encoded.write(stream)
    assert stream.getvalue() == expected
    assert encoded.size == len(expected)
    apart = [piece for piece in encoded.pieces if not isinstance(piece, bytes)]
    assert len(apart) == sum(len(tensor.raw_data) >= streamed for tensor in tensors(proto))


ARRAYS = [
    np.arange(12, dtype=np.float32).reshape(3, 4).T,
    np.arange(6).astype(ml_dtypes.bfloat16),
    np.array([-8, 7, 3]).astype(ml_dtypes.int4),
    np.array([[True, False]]),
    np.zeros((0, 3), np.int8),
    np.array(2.5),
    np.array([1 + 2j], np.complex64),
]


@pytest.mark.parametrize("array", ARRAYS, ids=lambda array: f"{array.dtype}{array.shape}")
def test_every_element_type_is_streamed_as_it_is(array, monkeypatch):
    monkeypatch.setattr(encoding, "STREAMED", 0)
    value = ir.Value(name="w", const_value=ir.Tensor(array, name="w"))
    graph = ir.Graph([], [], nodes=[], initializers=[value], opset_imports={"": 23}, name="g")
    model = ir.Model(graph, ir_version=10)
    stream = io.BytesIO()
    encode(model).write(stream)
    loaded = onnx.ModelProto.FromString(stream.getvalue())
    got = numpy_helper.to_array(loaded.graph.initializer[0])
    np.testing.assert_array_equal(got.astype(array.dtype), array)


def test_models_too_large_for_protobuf_are_refused_before_encoding():
    tensor = ir.LazyTensor(
        lambda: pytest.fail("read"), dtype=ir.DataType.FLOAT, shape=ir.Shape([1 << 30])
    )
    value = ir.Value(name="w", const_value=tensor)
    graph = ir.Graph([], [], nodes=[], initializers=[value], opset_imports={"": 23}, name="g")
    with pytest.raises(ResourceLimit) as caught:
        encode(ir.Model(graph, ir_version=10))
    assert caught.value.code == "E504"


def test_a_users_name_is_not_taken_for_a_mark():
    tensor = TensorProto(name="\0smelt", data_type=TensorProto.FLOAT, dims=[1], raw_data=bytes(4))
    graph = helper.make_graph([], "\0smelt", [], [], [tensor])
    proto = helper.make_model(graph)
    stream = io.BytesIO()
    encode(ir.from_proto(proto)).write(stream)
    assert onnx.ModelProto.FromString(stream.getvalue()).graph.initializer[0].name == "\0smelt"


def test_initializers_are_written_without_a_second_type() -> None:
    proto = onnx.parser.parse_model(
        HEADER
        + """g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
            z = Add(x, w)
            y = If<then_branch = t () => (float[2] a) <float[2] v = {1, 2}> { b = Neg(z) a = Mul(b, v) },
                   else_branch = e () => (float[2] d) { d = Identity(z) }>(c)
        }"""
    )
    written = proto_of(ir.from_proto(onnx.shape_inference.infer_shapes(proto)))
    then = written.graph.node[1].attribute[0].g
    assert [info.name for info in written.graph.value_info] == ["z"]
    assert [info.name for info in then.value_info] == ["b"]
    assert [tensor.name for tensor in then.initializer] == ["v"]
