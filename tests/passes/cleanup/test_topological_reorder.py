"""Nodes move to their first reader, and nothing else changes."""

from __future__ import annotations

import time

import onnx_ir as ir
import pytest
from rewrites import check_same_numbers, run_pass

from smelt.ir import scope, text
from smelt.passes.cleanup.topological_reorder import topological_reorder
from smelt.passes.pipeline import parse

G = "g (float[3,3] x, float[3,3] z) => (float[3,3] y)"
MOVED = {
    "before its reader": (
        "t = Transpose(x) a = Relu(z) b = Exp(a) y = Add(t, b)",
        "Relu Exp Transpose Add",
    ),
    "before the first of two": (
        "t = Transpose(x) a = Relu(z) b = Add(a, t) c = Exp(b) y = Add(t, c)",
        "Relu Transpose Add Exp Add",
    ),
    "a chain": (
        "d = Cast<to=11>(x) e = Cast<to=1>(d) t = Transpose(e) a = Relu(z) y = Add(t, a)",
        "Relu Cast Cast Transpose Add",
    ),
    "two for one reader": (
        "t = Transpose(x) u = Transpose<perm=[0,1]>(x) a = Relu(z) b = Add(u, t) y = Add(a, b)",
        "Relu Transpose Transpose Add Add",
    ),
    "one that nothing reads": ("t = Transpose(x) y = Relu(z)", "Relu Transpose"),
    "an output": ("y = Transpose(x) a = Relu(z) b = Exp(a)", "Relu Exp Transpose"),
    "in its place already": (
        "a = Relu(z) t = Transpose(x) y = Add(t, a)",
        "Relu Transpose Add",
    ),
}


@pytest.mark.parametrize(("body", "order"), MOVED.values(), ids=MOVED.keys())
def test_order(body: str, order: str) -> None:
    source, model = (text.parse(f"{G} {{ {body} }}") for _ in range(2))
    nodes = list(model.graph)
    stats = run_pass(topological_reorder, model)
    assert " ".join(node.op_type for node in model.graph) == order
    assert bool(stats.rewrites) == (list(model.graph) != nodes)
    assert run_pass(topological_reorder, model).rewrites == 0
    check_same_numbers(source, model, topological_reorder.exactness)


BRANCH = """g (bool c, float[3,3] x, float[3,3] z) => (float[3,3] y) {
    t = Transpose(x)
    a = Relu(z)
    b = If (c) <
        then_branch = h () => (float[3,3] u) { s = Transpose(z)  p = Abs(t)  u = Add(p, s) },
        else_branch = e () => (float[3,3] v) { v = Neg(a) }
    >
    y = Add(t, b)
}"""


def test_branches_read_and_are_reordered() -> None:
    source, model = text.parse(BRANCH), text.parse(BRANCH)
    assert run_pass(topological_reorder, model).fired == {"node moved": 2}
    assert [n.op_type for n in scope.nodes(model)] == [
        *("Relu", "Transpose", "If", "Add"),
        *("Abs", "Transpose", "Add"),
        "Neg",
    ]
    check_same_numbers(source, model, topological_reorder.exactness)


def test_other_operators_by_request() -> None:
    [step] = parse("topological-reorder{ops=Relu}")
    model = text.parse(f"{G} {{ a = Relu(z) t = Transpose(x) y = Add(t, a) }}")
    run_pass(topological_reorder, model, ops=step.options.ops)
    assert [node.op_type for node in model.graph] == ["Transpose", "Relu", "Add"]


def test_a_chain_of_ten_thousand_is_linear() -> None:
    x = ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([2, 2]))
    nodes = []
    value = x
    for _ in range(10_000):
        nodes.append(ir.node("Transpose", [value]))
        value = nodes[-1].outputs[0]
    nodes += [ir.node("Relu", [x]), ir.node("Add", [value, x])]
    y = nodes[-1].outputs[0]
    y.name, y.type, y.shape = "y", x.type, x.shape
    model = ir.Model(ir.Graph([x], [y], nodes=nodes, opset_imports={"": 20}), ir_version=10)
    started = time.process_time()
    run_pass(topological_reorder, model)
    assert model.graph[0].op_type == "Relu"
    assert time.process_time() - started < 5
