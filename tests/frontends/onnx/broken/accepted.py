"""Models that break a rule of ONNX and are accepted: exporters write them, with a clear meaning."""

from __future__ import annotations

from frontends.onnx.broken.change import Cases, changed, graph, tensor_info, weight
from frontends.onnx.broken.functions import GOOD
from onnx import ModelProto, TensorProto, helper

HIDING = """a = Neg(x) n = Constant<value = int64 {3}>() c = Constant<value = bool {1}>() y = Loop(n, c, a) <
    body = l (int64 i, bool b, float[4] a) => (bool d, float[4] r) { d = Identity(b) r = Add(a, x) }
>"""


def _sparse(model: ModelProto) -> None:
    values = helper.make_tensor("w", TensorProto.FLOAT, [2], [3.0, 4.0])
    places = helper.make_tensor("", TensorProto.INT64, [2], [1, 3])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [4]))


def _strings(model: ModelProto) -> None:
    strings = [b"\xff\xfe", b"a"]
    model.graph.initializer.append(helper.make_tensor("s", TensorProto.STRING, [2], strings))


def _training(model: ModelProto) -> None:
    model.training_info.add().algorithm.name = "steps"


CASES: Cases = {
    "ir_version 2 with imports": graph(ir=2),
    "a weight that is no input before IR version 4": changed(
        weight(), lambda m: setattr(m, "ir_version", 3)
    ),
    "a function before IR version 8": changed(GOOD, lambda m: setattr(m, "ir_version", 7)),
    "a call with an attribute that the function lacks": changed(
        GOOD, lambda m: m.graph.node[0].attribute.append(helper.make_attribute("k", 1))
    ),
    "a domain twice at one version": changed(graph(), lambda m: m.opset_import.add(version=20)),
    "a graph without a name": changed(graph(), lambda m: m.graph.ClearField("name")),
    "nodes in the wrong order": graph("y = Neg(a) a = Relu(x)"),
    "two nodes of one name": changed(
        graph("a = Relu(x) y = Neg(a)"),
        lambda m: [setattr(node, "name", "n") for node in m.graph.node],
    ),
    "an input of a body that hides an outer value": graph(HIDING),
    "an input without a shape": changed(
        graph(), lambda m: m.graph.input[0].type.tensor_type.ClearField("shape")
    ),
    "an output without a type": changed(graph(), lambda m: m.graph.output[0].ClearField("type")),
    "an input of a size below zero": changed(
        graph(outputs="float[N] y"),
        lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[0], "dim_value", -1),
    ),
    "an input declared again with another type": changed(
        graph(), lambda m: m.graph.value_info.append(tensor_info("x", TensorProto.INT64))
    ),
    "a value declared that there is not": changed(
        graph(), lambda m: m.graph.value_info.append(tensor_info("other"))
    ),
    "metadata twice": changed(
        graph(), lambda m: [m.metadata_props.add(key="k", value=v) for v in ("1", "2")]
    ),
    "a place of external data on inside data": weight(
        lambda t: t.external_data.add(key="location", value="w.bin")
    ),
    "a sparse weight": changed(graph("y = Add(x, w)"), _sparse),
    "a string that is no text": changed(graph(), _strings),
    "quantization of a value that there is not": changed(
        graph(), lambda m: m.graph.quantization_annotation.add(tensor_name="other")
    ),
    "steps for training": changed(graph(), _training),
}
