"""How the nodes of both sides are grouped, and the texts of nodes and groups."""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir
import pytest
from small_models import VARIED

import smelt
from smelt.check.report.folding import constant_nodes
from smelt.check.report.graph import graph_of
from smelt.check.report.kinds import kind_of, summary_of
from smelt.check.report.modules import tree_of
from smelt.check.report.places import Places
from smelt.compiler import optimize_model
from smelt.ir.text import parse


def chain(modules: list[str]) -> ir.Model:
    """Return four nodes for each module, with names like those of PyTorch's exporters."""
    count = 4 * len(modules)
    body = " ".join(
        f"v{i + 1} = {('Neg', 'Abs', 'Exp', 'Identity')[i % 4]}(v{i})" for i in range(count)
    )
    model = parse(f"g (float[4] v0) => (float[4] v{count}) {{ {body} }}")
    for index, node in enumerate(model.graph):
        node.name = f"{modules[index // 4]}{node.op_type}"
    return model


def names(trees: list) -> list[str]:
    return [tree["name"] for tree in trees if isinstance(tree, dict)]


@pytest.mark.parametrize("modules", [["/a/layer.0/", "/a/layer.1/"], [""] * 40])
def test_both_sides_have_the_same_groups(modules):
    report = smelt.HtmlReport()
    smelt.optimize(chain(modules), observers=[report])
    found = report.document()
    before, after = found["before"]["tree"], found["after"]["tree"]
    assert len(found["after"]["nodes"]) < len(found["before"]["nodes"])
    assert names(before) == names(after) != []
    assert [names(tree["kids"]) for tree in before] == [names(tree["kids"]) for tree in after]


def test_two_files_have_the_same_groups():
    modules = ["/layer.0/", "/layer.1/"]
    result = chain(modules)
    optimize_model(result)
    report = smelt.HtmlReport()
    report.compare(chain(modules), result)
    found = report.document()
    assert names(found["before"]["tree"]) == names(found["after"]["tree"])


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([("a", "b"), ("a", "b"), ("a", "c")], ("a", "b")),
        ([("a", "b"), ("a", "c"), ("a", "d")], ("a",)),
        ([("a",), ("b",)], ("a",)),
        ([("a",), ("b",), ("c",)], ()),
        ([(), (), ("a",)], ()),
    ],
)
def test_a_node_stands_where_most_of_its_sources_stand(groups, expected):
    items = [(group, number, "X") for number, group in enumerate(groups)]
    places = Places(tree_of([*items, *((group, 9, "X") for group in groups)]), [()] * 10)
    node = ir.node("Relu", [])
    assert places.assign({node: list(range(len(groups)))}) == {node: expected}


def test_constant_nodes_depend_on_weights_only():
    text = """g (float[2,2] x) => (float[2,2] y, float[2,2] out, float[2,2] r) <float[2,2] w = {1,2,3,4}> {
        t = Transpose(w) n = Neg(t) u = RandomUniformLike(w) r = Add(x, u)
        y = MatMul(x, n) out = Abs(t) }"""
    found = {node.op_type for node in constant_nodes(parse(text))}
    assert found == {"Transpose", "Neg"}


def test_weights_and_attributes_stand_on_a_node():
    graph = graph_of(parse(VARIED["convolutions"]))
    nodes = {node["op"]: node for node in graph["nodes"]}
    assert nodes["Conv"]["lines"] == [
        "W 4x3x1x1 · pads [0,1,0,1]".replace("x", "\u00d7"),
        "strides [1,2]",
    ]
    assert nodes["Reshape"]["lines"] == ["shape [0, -1]"]
    assert nodes["Relu"]["lines"] == []


@pytest.mark.parametrize(
    ("op", "kind"),
    [
        ("MatMul", "product"),
        ("com.microsoft.FusedMatMul", "product"),
        ("QLinearConv", "product"),
        ("MultiHeadAttention", "attention"),
        ("SkipLayerNormalization", "normalization"),
        ("Gelu", "activation"),
        ("Unsqueeze", "movement"),
        ("DequantizeLinear", "quantization"),
        ("ReduceMean", "reduction"),
        ("If", "recurrence"),
        ("Add", "elementwise"),
        ("my.own.Thing", "other"),
    ],
)
def test_kinds_of_operators(op, kind):
    assert kind_of(op) == kind


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ({"MatMul": 6, "Softmax": 1, "Erf": 1}, "attention + feed-forward"),
        ({"MatMul": 2, "Softmax": 1}, "attention"),
        ({"smelt.DotGeneral": 6, "Exp": 1, "ReduceSum": 1}, "attention"),
        ({"Conv": 2, "Relu": 2}, "convolution"),
        ({"Gemm": 1}, "projection"),
        ({"LayerNormalization": 1, "Add": 1}, "normalization"),
        ({"Gather": 2, "Add": 1, "LayerNormalization": 1}, "embedding"),
        ({"Shape": 3, "Gather": 3, "Concat": 1}, "3 Gather, 3 Shape"),
        ({}, ""),
    ],
)
def test_summaries_name_the_computation_of_a_group(operators, expected):
    assert summary_of(Counter(operators)) == expected
