"""A model as lines: names, types, versions, graphs below, and weights without their elements."""

import numpy as np
import onnx_ir as ir

from smelt.ir.listing import listing, node_text, with_checksums
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.text import parse

LARGE = ",".join(str(i) for i in range(9))


def lines(text):
    model = parse(text)
    ShapeInference(model).infer_model()
    return [line.strip() for line in listing(model).lines]


def test_nodes_inputs_outputs_and_weights_have_their_types():
    found = lines(
        f"main (float[B,9] x) => (float[B,1] y) <float[9] w = {{{LARGE}}}, int64[1] a = {{1}}> "
        "{ h = Mul(x, w) y = ReduceSum<keepdims = 1>(h, a) }"
    )
    assert found == [
        '<ir_version: 10, opset_import: ["" : 23]>',
        "main (",
        "float[B,9] x,",
        ") => (",
        "float[B,1] y,",
        ") <",
        "float[9] w = {...},  # 36 bytes",
        "int64[1] a = {1},",
        "> {",
        "h = Mul(x, w)  # float[B,9]",
        "y = ReduceSum<keepdims=1>(h, a)  # float[B,1]",
        "}",
    ]


def test_a_dim_that_inference_made_up_has_no_name():
    found = lines("g (float[B,9] x) => (int64[a,b] y) { y = NonZero(x) }")
    assert "y = NonZero(x)  # int64[2,?]" in found


def test_types_that_are_unknown_are_left_out_and_sequences_are_told():
    model = parse("g (seq(float[N]) s) => (float[N] y) { i = mine.Odd(s) y = SequenceAt(s, i) }")
    found = [line.strip() for line in listing(model).lines]
    assert "seq(float[N]) s," in found
    assert "i = mine.Odd(s)" in found


def test_graphs_below_are_indented_under_the_name_of_their_attribute():
    model = parse(
        "g (float[4] x, bool c) => (float[4] y) { y = If(c) <"
        "then_branch = t () => (float[4] p) { p = Relu(x) },"
        "else_branch = e () => (float[4] q) { q = Neg(x) }> }"
    )
    found = listing(model).lines
    assert "  y = If(c) <  # float[4]" in found
    assert "    then_branch = t (" in found
    assert "      q = Neg(x)  # float[4]" in found


def test_functions_follow_the_graph():
    model = ir.from_onnx_text(
        '<ir_version: 10, opset_import: ["" : 20, "mine" : 1]> g (float[4] x) => (float[4] y) '
        '{ y = mine.f(x) } <domain: "mine", opset_import: ["" : 20]> f (a) => (b) { b = Relu(a) }'
    )
    assert "mine.f (" in listing(model).lines
    assert "  b = Relu(a)" in listing(model).lines


def test_a_hostile_name_stays_on_its_line_and_sends_nothing_to_the_terminal():
    model = parse("g (float[4] x) => (float[4] y) { h = Relu(x) y = Neg(h) }")
    model.graph.node(0).outputs[0].name = "h\n\x1b[31m-  x\u202e"
    found = listing(model).lines
    assert all(line.isprintable() for line in found)
    assert r"  h\n\x1b[31m-  x\u202e = Relu(x)" in found
    assert node_text(model.graph.node(0)) == r"h\n\x1b[31m-  x\u202e = Relu(x)"


def with_weight(array):
    model = parse("g (float[9] x) => (float[9] y) { y = Mul(x, w) }".replace("w)", "x)"))
    value = ir.Value(name="w", const_value=ir.tensor(array))
    model.graph.register_initializer(value)
    return listing(model)


def test_large_weights_differ_only_if_their_elements_do():
    ones, twos = np.ones(9, np.float32), np.full(9, 2, np.float32)
    a, b = with_checksums(with_weight(ones), with_weight(ones.copy()))
    assert a == b
    assert not any("#" in line.partition("bytes")[2] for line in a)
    a, b = with_checksums(with_weight(ones), with_weight(twos))
    differing = [(old, new) for old, new in zip(a, b, strict=True) if old != new]
    assert len(differing) == 1
    assert all("float[9] w = {...},  # 36 bytes, #" in line for line in differing[0])


def test_strings_are_compared_by_what_they_say():
    words = [f"word {i}".encode() for i in range(20)]
    array = np.array(words, dtype=object)
    a, b = with_checksums(with_weight(array), with_weight(np.array(list(words), dtype=object)))
    assert a == b
    a, b = with_checksums(
        with_weight(array), with_weight(np.array([b"", *words[1:]], dtype=object))
    )
    assert a != b
