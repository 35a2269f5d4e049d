"""``expect_graph`` accepts chains that the graph has, and its error names a missing one;
``snippet`` writes the call.
"""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.check.expect import expect_graph
from smelt.check.structure import lines, snippet
from smelt.errors import Mismatch, UsageError
from smelt.ir.text import parse

MODEL = """g (float[B,4] x, float[4,4] w) => (float[B,4] y, float[B,2] a, float[B,2] b) {
one = Constant<value_float=1.0>()
h = MatMul(x, w)
r = Relu(h)
s = Relu(r)
n = Neg(h)
y = Add(s, n)
a, b = Split<axis=1, num_outputs=2>(n)
}"""

FUNCTION = """<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
g (float[2] x) => (float[2] y) { t = f.twice(x) y = f.twice(t) }
<domain: "f", opset_import: ["" : 20]>
twice (x) => (y) { s = Neg(x) y = Add(s, s) }"""

BRANCH = """g (bool c, float[4] x) => (float[4] y) { t = Neg(x) y = If (c) <
then_branch = t () => (float[4] u) { u = Relu(t) },
else_branch = f () => (float[4] v) { v = Abs(x) }> }"""


@pytest.fixture
def model() -> ir.Model:
    return parse(MODEL)


def test_lines_are_chains_of_readers_with_counts(model):
    assert lines(model.graph)[0].startswith("MatMul")
    expect_graph(
        model,
        [
            "MatMul:Bx4 -> Relu:Bx4 * 2",
            "Neg:Bx4 -> Add:Bx4",
            "Split:Bx2,Bx2",
        ],
        exact=True,
    )


def test_chains_may_pass_by_others_and_leave_shapes_out(model):
    expect_graph(model, ["MatMul -> Neg -> Split:?x2,Bx?", "Relu", "Relu:Bx4 -> Add"])
    expect_graph(model, ["MatMul -> Neg -> Add"], counts={"Relu": 2, "Conv": 0})
    expect_graph(model, [])


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        (["Relu * 3"], {}),
        (["Relu", "Relu", "Relu"], {}),
        (["Neg", "MatMul"], {}),
        (["Relu -> Neg"], {}),
        (["MatMul:Bx5"], {}),
        (["MatMul:?"], {}),
        (["Split:Bx2"], {}),
        (["f.Relu"], {}),
        ([], {"counts": {"Relu": 1}}),
        ([], {"exact": True}),
        (["MatMul -> Relu * 2 -> Neg", "Add", "Split"], {"exact": True}),
        (["MatMul -> Relu * 2", "Neg -> Add"], {"exact": True}),
        (["MatMul -> Relu * 2", "Neg -> Add", "Split", "Split"], {"exact": True}),
        (["MatMul -> Relu * 2", "Add", "Neg", "Split"], {"exact": True}),
        ([], {"function": "twice"}),
    ],
)
def test_missing_operators_and_wrong_counts_are_mismatches(model, expected, options):
    with pytest.raises(Mismatch) as caught:
        expect_graph(model, expected, **options)
    assert caught.value.code == "E706"


def test_an_error_shows_the_graph(model):
    with pytest.raises(Mismatch) as caught:
        expect_graph(model, ["Conv"])
    assert caught.value.at == ("MatMul:Bx4 -> Relu:Bx4 * 2", "Neg:Bx4 -> Add:Bx4", "Split:Bx2,Bx2")


def test_functions_by_name():
    model = ir.from_onnx_text(FUNCTION)
    expect_graph(model, ["f.twice:2 * 2"], exact=True)
    expect_graph(model, ["twice * 2"], counts={"f.twice": 2})
    expect_graph(model, ["Neg -> Add"], function="twice", exact=True)


def test_a_graph_inside_a_node_reads_for_it():
    expect_graph(parse(BRANCH), ["Neg:4 -> If:4"], exact=True)


def test_scalars_and_sizes_that_are_written_with_an_x():
    text = "g (float[max_len,2] x) => (float z) { y = Neg(x) z = ReduceSum<keepdims=0>(y) }"
    model = parse(text)
    expect_graph(model, ["Neg:(max_len)x2 -> ReduceSum:()"], exact=True)
    expect_graph(model, ["Neg:?x2"])
    with pytest.raises(Mismatch):
        expect_graph(model, ["Neg:(max_len)x2 -> ReduceSum:?"])


@pytest.mark.parametrize("text", ["", "Conv ->", "Conv * 0", "Conv*2", "3", "Conv: 2"])
def test_chains_that_cannot_be_read(model, text):
    with pytest.raises(UsageError) as caught:
        expect_graph(model, [text])
    assert caught.value.code == "E642"


@pytest.mark.parametrize("text", [MODEL, BRANCH, "g (float[2] x) => (float[2] x) {}"])
def test_a_snippet_expects_the_model_that_it_was_made_of(text):
    model = parse(text)
    exec(compile(snippet(model), "snippet", "exec"), {"model": model})
    other = parse(text.replace("Neg", "Abs").replace("{}", "{ y = Relu(x) }"))
    if "Neg" in text or "{}" in text:
        with pytest.raises(Mismatch):
            exec(compile(snippet(model), "snippet", "exec"), {"model": other})


def test_a_snippet_has_the_functions_too():
    model = ir.from_onnx_text(FUNCTION)
    text = snippet(model)
    assert 'function="twice"' in text
    exec(compile(text, "snippet", "exec"), {"model": model})
