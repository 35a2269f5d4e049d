"""The data of a report: the state of each node, the work of passes, and which nodes belong
together.
"""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from small_models import HEADER, MODEL, VARIED

import smelt
from smelt.check.report.graph import graph_of
from smelt.check.report.modules import MOST, path_of, tree_of
from smelt.check.report.weights import WeightFacts, label_of
from smelt.ir import scope
from smelt.ir.provenance import Origin, stamp
from smelt.ir.text import parse


def document(text: str, **options: object) -> dict[str, object]:
    report = smelt.HtmlReport("a title")
    smelt.optimize(parse(text), observers=[report], **options)
    return report.document()


def leaves(trees: list) -> list[int]:
    found: list[int] = []
    for tree in trees:
        if isinstance(tree, int):
            found.append(tree)
        else:
            found += ([tree["node"]] if "node" in tree else []) + leaves(tree["kids"])
    return found


def widest(trees: list) -> int:
    inner = [widest(tree["kids"]) for tree in trees if isinstance(tree, dict)]
    return max([len(trees), *inner])


def by_op(graph: dict) -> dict[str, dict]:
    return {node["op"]: node for node in graph["nodes"]}


def test_both_sides_and_what_became_of_each_node():
    found = document(MODEL)
    before, after = by_op(found["before"]), by_op(found["after"])
    assert list(before) == ["Identity", "MatMul", "Relu"]
    assert list(after) == ["MatMul", "Relu"]
    assert before["Identity"]["state"] == "gone"
    assert before["Identity"]["pass"] == "noop-elimination"
    assert "state" not in before["MatMul"]
    assert after["MatMul"]["from"] == [1]


def test_a_fused_node_names_its_sources_rules_and_pass():
    text = HEADER + "g (float[2,3] x) => (float[2,3] y) { s = Sigmoid(x) y = Mul(x, s) }"
    report = smelt.HtmlReport()
    smelt.optimize(parse(text.replace("20", "24")), observers=[report], pipeline="fuse-swish")
    found = report.document()
    [swish] = found["after"]["nodes"]
    assert (swish["op"], swish["state"], swish["pass"]) == ("Swish", "new", "fuse-swish")
    assert swish["from"] == [0, 1]
    assert swish["rules"]
    assert [node["state"] for node in found["before"]["nodes"]] == ["changed", "changed"]


def test_nodes_selected_by_a_target_name_the_target():
    text = (
        HEADER
        + """g (float[1,1,4,4] x) => (float[1,1,4,4] y) <float[1,1,1,1] w = {2}> {
        c = Conv(x, w) y = Relu(c) }"""
    )
    report = smelt.HtmlReport()
    report.artifact = smelt.compile(parse(text), target="c", observers=[report])
    found = report.document()
    [node] = found["after"]["nodes"]
    assert (node["op"], node["pass"]) == ("smelt.c.ConvRelu", "the selection of target c")
    assert node["from"] == [0, 1]
    assert [node["state"] for node in found["before"]["nodes"]] == ["changed", "changed"]


def test_an_artifact_alone_is_shown_as_it_is():
    report = smelt.HtmlReport()
    report.artifact = smelt.compile(parse(MODEL), target="onnx")
    found = report.document()
    for side in ("before", "after"):
        assert [node.get("state") for node in found[side]["nodes"]] == [None, None]


def test_equal_lines_of_jax_lead_to_their_own_nodes():
    jax = pytest.importorskip("jax")

    def layer(x):
        return jax.nn.relu(x + 1.0)

    report = smelt.HtmlReport()
    smelt.compile(lambda x: layer(layer(x)), "f32[4]", observers=[report])
    found = report.document()
    relus = [node for node in found["after"]["nodes"] if node["op"] == "Relu"]
    assert [len(node["from"]) for node in relus] == [1, 1]
    assert relus[0]["from"] != relus[1]["from"]
    assert all("test_data.py" in node["source"][0] for node in relus)


def test_passes_and_near_misses_are_those_of_the_run():
    text = (
        HEADER
        + "g (float[2] x) => (float[2] y) { c = Constant<value_floats=[3.0,3.0]>() y = Div(x, c) }"
    )
    found = document(text, pipeline="divide-to-multiply")
    run = next(each for each in found["passes"] if each["pass"] == "divide-to-multiply")
    assert run["rewrites"] == 0
    assert run["pass"] == "divide-to-multiply"
    [miss] = found["near_misses"]
    assert miss["count"] == 1
    assert "power of two" in miss["why"]


def test_an_interface_changes_only_where_it_was_asked_for():
    found = document(MODEL)
    assert found["interface"] == [
        ["input 0", "x", "float[B,4]", "float[B,4]"],
        ["output 0", "y", "float[B,4]", "float[B,4]"],
    ]
    bound = document(MODEL, pipeline="materialize-symbolic-dims{dims=B=3}")
    assert bound["interface"][0] == ["input 0", "x", "float[B,4]", "float[3,4]"]


def test_an_empty_pipeline_has_the_same_graph_twice():
    report = smelt.HtmlReport()
    report.history.begin(parse(MODEL))
    found = report.document()
    assert found["passes"] == []
    assert [node.get("state") for node in found["after"]["nodes"]] == [None] * 3


@pytest.mark.parametrize("text", [MODEL, *VARIED.values()], ids=["plain", *VARIED])
def test_every_node_is_in_the_tree_once_but_constants(text):
    graph = graph_of(parse(text))
    drawn = [i for i, node in enumerate(graph["nodes"]) if not node.get("constant")]
    assert sorted(leaves(graph["tree"])) == drawn
    json.dumps(graph, allow_nan=False)


@pytest.mark.parametrize("count", [1, MOST, MOST + 1, 5000])
def test_no_group_is_wide(count):
    tree = tree_of([((), i, f"Op{i}") for i in range(count)])
    assert sorted(leaves(tree)) == list(range(count))
    assert widest(tree) <= MOST


def test_repeated_layers_become_blocks():
    labels = ["Gather", *(["MatMul", "Add", "Relu", "Mul", "Sub", "Div", "Tanh"] * 25), "Gemm"]
    tree = tree_of([((), i, label) for i, label in enumerate(labels)])
    names = [kid["name"] for kid in tree if isinstance(kid, dict)]
    assert names == [f"block {i} of 25" for i in range(1, 26)]
    assert {len(kid["kids"]) for kid in tree if isinstance(kid, dict)} == {7}


def test_modules_come_from_names_and_from_scopes_of_pytorch_and_jax():
    node = ir.node("Relu", [], name="/encoder/layer.0/act/Relu")
    assert path_of(node) == ("encoder", "layer.0", "act")
    node.metadata_props["pkg.torch.onnx.name_scopes"] = "['', 'enc', 'enc.act', 'gelu']"
    assert path_of(node) == ("enc", "act")
    node.metadata_props["pkg.torch.onnx.class_hierarchy"] = "['nets.Bert', 'nets.Enc', 'f<x>', 'a']"
    assert path_of(node) == ("enc Enc", "act")
    node.metadata_props["pkg.torch.onnx.class_hierarchy"] = "['nets.Bert']"
    assert path_of(node) == ("enc", "act")
    node.metadata_props["pkg.torch.onnx.name_scopes"] = "['', '_empty_nn_module_stack_of_it', 'x']"
    assert path_of(node) == ()
    node.metadata_props["pkg.torch.onnx.name_scopes"] = "__import__('os')"
    assert path_of(node) == ()
    flax = ir.node("Relu", [], name="node_Relu_0")
    stamp(flax, Origin(("net.py:8 in Block.__call__ [Net/block_0/Dense_0]",)))
    assert path_of(flax) == ("Net", "block_0", "Dense_0")
    stamp(flax, Origin(("net.py:8 in Block.__call__ [Net/block_0/relu]",)))
    assert path_of(flax) == ("Net", "block_0")
    stamp(flax, Origin(("net.py:8 in <lambda>",)))
    assert path_of(flax) == ()
    assert len(path_of(ir.node("Relu", [], name="a/" * 10_000))) < 50


def test_modules_nest_and_single_ones_join():
    items = [(("a", "b"), 0, "X"), (("a", "b"), 1, "X"), ((), 2, "X"), (("c",), 3, "X")]
    assert tree_of(items) == [{"name": "a/b", "kids": [0, 1]}, 2, 3]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.arange(20, dtype=np.int8), {"low": "0", "high": "19"}),
        (np.linspace(-1, 1, 20, dtype=np.float16), {"low": "-1", "high": "1"}),
        (np.array([np.nan, 1.0, np.inf, *[2.0] * 7]), {"low": "1", "high": "inf", "not_finite": 2}),
        (np.full(10, np.nan), {"low": "nan", "high": "nan", "not_finite": 10}),
        (np.array([1.5, 0.1], np.float32), {"elements": "[1.5, 0.1]"}),
        (np.array([1, -2], np.int64), {"elements": "[1, -2]"}),
        (np.array([True]), {"elements": "[True]"}),
        (np.array([1j], np.complex64), {"elements": "[1j]"}),
        (np.array([1.5], ml_dtypes.bfloat16), {"elements": "[1.5]"}),
        (np.arange(9).astype(ml_dtypes.int4), {"low": "-8", "high": "7"}),
        (np.zeros(9, bool), {"low": "False", "high": "False"}),
        (np.zeros((0, 3), np.float32), {}),
    ],
)
def test_ranges_of_weights(array, expected):
    tensor = ir.tensor(array, name="w")
    facts = WeightFacts().of(ir.Value(name="w", const_value=tensor), tensor)
    assert facts["bytes"] == tensor.nbytes
    told = {"low", "high", "not_finite", "elements"} & facts.keys()
    assert {key: facts[key] for key in told} == expected


def test_weights_beyond_the_budget_are_not_read():
    facts = WeightFacts()
    facts.budget_left = 10
    tensor = ir.tensor(np.zeros(100, np.float32), name="w")
    assert "low" not in facts.of(ir.Value(name="w"), tensor)


def test_a_report_leaves_the_result_as_it_is():
    reported, plain = (
        smelt.optimize(parse(VARIED["attention"]), observers=observers)
        for observers in ([smelt.HtmlReport()], [])
    )
    from smelt.ir.provenance import write_to_metadata

    for model in (reported, plain):
        write_to_metadata(scope.nodes(model))
    assert ir.to_proto(reported) == ir.to_proto(plain)


@pytest.mark.parametrize(
    ("elements", "shape", "label"),
    [
        ("[1.5, 2, 3]", [3], "[1.5, 2, 3]"),
        ("[1.5]", [], "1.5"),
        ("[1, 2, 3, 4, 5, 6, 7, 8]", [8], "[1, 2, 3, 4, 5, 6, 7, 8]"),
        ("[1, 2, 3, 4, 5, 6, 7, 18]", [2, 4], "2\N{MULTIPLICATION SIGN}4"),
        (None, [12, 768], "12\N{MULTIPLICATION SIGN}768"),
        (None, [], "scalar"),
    ],
)
def test_a_constant_is_labelled_by_its_elements_in_at_most_24_characters(elements, shape, label):
    assert label_of({"elements": elements, "shape": shape}) == label


def test_names_of_sides_and_the_title_are_cut():
    report = smelt.HtmlReport("t" * 121)
    report.compare(parse(MODEL), parse(MODEL), sides=("b" * 60, "a" * 61))
    found = report.document()
    assert found["title"] == "t" * 120 + "\N{HORIZONTAL ELLIPSIS} (121 characters)"
    assert found["sides"] == ["b" * 60, "a" * 60 + "\N{HORIZONTAL ELLIPSIS} (61 characters)"]
