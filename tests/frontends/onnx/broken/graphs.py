"""Graphs with impossible names, order or nodes."""

from __future__ import annotations

from frontends.onnx.broken.change import Cases, changed, graph, node, tensor_info, weight
from onnx import ModelProto, TensorProto, helper


def _repeat_input(model: ModelProto) -> None:
    model.graph.input.append(tensor_info("x"))


def _two_weights(model: ModelProto) -> None:
    model.graph.initializer.append(model.graph.initializer[0])


BRANCH = (
    "b = Cast<to = 9>(s) y = If(b) <then_branch = {}, else_branch = e () => (q) {{ q = Relu(x) }}>"
)


def _branch(text: str) -> str:
    return BRANCH.format(text)


SCALAR = "float[4] x, float s"

CASES: Cases = {
    "no graph": changed(graph(), lambda m: m.ClearField("graph")),
    "a cycle": graph("a = Add(x, b) b = Neg(a) y = Relu(b)"),
    "a node that reads itself": graph("a = Add(x, a) y = Relu(a)"),
    "a value that nothing writes": graph("y = Add(x, w)"),
    "an output that nothing writes": graph("a = Relu(x)"),
    "a value written twice": graph("y = Relu(x) y = Neg(x)"),
    "a node that writes one value twice": graph("y, y = Split<num_outputs = 2>(x)"),
    "a node that writes an input": graph("x = Relu(x) y = Neg(x)"),
    "a node that writes a weight": changed(
        weight(), lambda m: m.graph.node.append(helper.make_node("Neg", ["x"], ["w"]))
    ),
    "two inputs of one name": changed(graph(), _repeat_input),
    "two weights of one name": changed(weight(), _two_weights),
    "an input without a name": changed(graph(), lambda m: m.graph.input.append(tensor_info(""))),
    "an output without a name": changed(graph(), lambda m: m.graph.output.append(tensor_info(""))),
    "a weight without a name": weight(lambda t: t.ClearField("name")),
    "a node without an operator": changed(graph(), node(op_type="")),
    "a node without inputs and outputs": changed(
        graph(), lambda m: m.graph.node.append(helper.make_node("Constant", [], []))
    ),
    "a domain that is not imported": changed(graph(), node(domain="mine")),
    "an unknown operator": graph("y = Reluu(x)"),
    "too many inputs": graph("y = Relu(x, x)"),
    "too few inputs": graph("y = Add(x)"),
    "a required input left out": changed(
        graph("y = Add(x, x)"), lambda m: m.graph.node[0].input.__setitem__(1, "")
    ),
    "too many outputs": graph("y, z = Relu(x)"),
    "too few outputs": changed(
        graph(), lambda m: m.graph.node.append(helper.make_node("Relu", ["x"], []))
    ),
    "a required output left out": changed(
        graph(), lambda m: m.graph.node.append(helper.make_node("Relu", ["x"], [""]))
    ),
    "float and int64 added": graph("i = Cast<to = 7>(x) y = Add(x, i)"),
    "a type that the operator does not take": graph("b = Not(x) y = Relu(x)"),
    "an output of another type than its node writes": graph(outputs="int64[4] y"),
    "a branch that reads what nothing writes": graph(
        _branch("t () => (p) { p = Relu(w) }"), inputs=SCALAR
    ),
    "a branch that reads what another branch writes": graph(
        _branch("t () => (p) { p = Relu(q) }"), inputs=SCALAR
    ),
    "a branch that returns what nothing writes": graph(
        _branch("t () => (p) { r = Relu(x) }"), inputs=SCALAR
    ),
    "a branch that reads what is written after it": graph(
        _branch("t () => (p) { p = Relu(y) }"), inputs=SCALAR
    ),
    "a branch that writes a value twice": graph(
        _branch("t () => (p) { p = Relu(x) p = Neg(x) }"), inputs=SCALAR
    ),
    "a branch that writes what is written around it": graph(
        _branch("t () => (p) { b = Relu(x) p = Neg(b) }"), inputs=SCALAR
    ),
    "a value declared twice with two types": changed(
        graph("a = Relu(x) y = Neg(a)"),
        lambda m: m.graph.value_info.extend(
            [tensor_info("a"), tensor_info("a", TensorProto.INT64)]
        ),
    ),
    "a value declared with another type than its node writes": changed(
        graph("a = Relu(x) y = Neg(a)"),
        lambda m: m.graph.value_info.append(tensor_info("a", TensorProto.INT64)),
    ),
    "a default of another type than its input": changed(
        graph(),
        lambda m: m.graph.initializer.append(
            helper.make_tensor("x", TensorProto.INT64, [4], [1, 2, 3, 4])
        ),
    ),
    "a default of another shape than its input": changed(
        graph(),
        lambda m: m.graph.initializer.append(
            helper.make_tensor("x", TensorProto.FLOAT, [3], [1, 2, 3])
        ),
    ),
    "a weight declared with another type": changed(
        weight(), lambda m: m.graph.value_info.append(tensor_info("w", TensorProto.INT64))
    ),
}
