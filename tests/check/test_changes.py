"""Differences of node lists, as text."""

import onnx_ir as ir

from smelt.check.changes import node_changes

HEADER = '<ir_version: 10, opset_import: ["" : 20]>\n'


def model(body):
    return ir.from_onnx_text(HEADER + f"g (float[4] x) => (float[4] y) {{ {body} }}")


def test_the_same_nodes_in_another_order_are_the_same():
    a, b = "a = Neg(x)  b = Abs(x)  y = Add(a, b)", "b = Abs(x)  a = Neg(x)  y = Add(a, b)"
    assert node_changes(model(a), model(b)) == ([], [])


def test_an_operator_an_operand_and_an_attribute_count():
    base = "a = Neg(x)  y = Softmax<axis = 0>(a)"
    assert node_changes(model(base), model("a = Abs(x)  y = Softmax<axis = 0>(a)")) == (
        ["a = Neg(x)"],
        ["a = Abs(x)"],
    )
    removed, added = node_changes(model(base), model("a = Neg(x)  y = Softmax<axis = -1>(a)"))
    assert (len(removed), len(added)) == (1, 1)


def test_constants_are_told_apart_by_their_values():
    large = ", ".join(["1"] * 20)
    a = f"c = Constant<value = float[20] {{{large}}}>()  y = Neg(x)"
    b = f"c = Constant<value = float[20] {{{large[:-1]}2}}>()  y = Neg(x)"
    removed, added = node_changes(model(a), model(b))
    assert removed != added
    assert len(removed) == 1
