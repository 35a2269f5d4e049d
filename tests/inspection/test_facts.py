"""Weights, chains, symbolic dims and quantization of a model."""

from __future__ import annotations

import onnx_ir as ir
import pytest

import smelt
from smelt.inspection.quantized import bits_counted
from smelt.ir import text
from smelt.ir.html.model import model_html
from smelt.ir.text import canonical


def facts(graph, dims=None, **domains):
    return smelt.inspect(text.parse(graph, **domains), dims)


def test_weights_are_sorted_by_size_and_counted_wherever_they_are():
    graph = """g (bool c, float[2] x) => (float[2] y)
    <float[2] small = {1, 2}, int64[3] more = {1, 2, 3}> {
      k = Constant<value = float[4] {1, 2, 3, 4}>()
      y = If (c) <then_branch = t () => (float[2] a) <float[1] inner = {1}> { a = Add(x, inner) },
                  else_branch = e () => (float[2] b) { b = Add(x, small) }> }"""
    found = facts(graph).weights
    assert [(w.name, w.type, w.bytes) for w in found] == [
        ("more", "int64[3]", 24),
        ("k", "float[4]", 16),
        ("small", "float[2]", 8),
        ("inner", "float[1]", 4),
    ]


def test_the_longest_chain_of_each_result():
    graph = """g (float[4] x) => (float[4] y, float[4] z) {
      a = Relu(x) b = Exp(a) y = Add(b, x) z = Neg(a) }"""
    found = facts(graph).chains
    assert [[node.op_type for node in chain] for chain in found] == [
        ["Relu", "Exp", "Add"],
        ["Relu", "Neg"],
    ]
    assert facts("g (float[4] x) => (float[4] x) { }").chains == []


def test_values_that_a_branch_reads_are_part_of_the_chain():
    graph = """g (bool c, float[2] x) => (float[2] y) { h = Exp(x)
    y = If (c) <then_branch = t () => (float[2] a) { a = Neg(h) },
                else_branch = e () => (float[2] b) { b = Abs(h) }> }"""
    assert [node.op_type for node in facts(graph).chains[0]] == ["Exp", "If"]


def test_symbolic_dims_say_where_they_come_from():
    graph = """g (float[B,S] x, float[B,4] m) => (float[B,S] y, int64[2,K] z) {
      y = Relu(x) z = NonZero(m) }"""
    found = {s.name: (s.inputs, s.outputs) for s in facts(graph).symbols}
    assert found["B"] == (["x[0]", "m[0]"], ["y[0]"])
    assert found["S"] == (["x[1]"], ["y[1]"])
    assert found["K"] == ([], ["z[1]"])
    assert [s.name for s in facts(graph, {"B": 1, "S": 2}).symbols] == ["K"]


def test_dims_without_a_name_go_by_input_and_axis():
    found = facts("g (float[?,4] x) => (float[?,4] y) { y = Relu(x) }")
    assert [symbol.name for symbol in found.symbols] == ["x_0"]
    assert str(found.total.flops) == "4*x_0"
    bound = facts("g (float[?,4] x) => (float[?,4] y) { y = Relu(x) }", {"x_0": 5})
    assert bound.total.flops.value == 20


def test_names_that_an_exporter_gave_sizes_of_outputs_are_told():
    found = facts(
        "g (float[B,4] x) => (float[n,m] y, float[r] z, int64[2,k] w) { y = Concat <axis = 1> (x, x)"
        " shape = Constant <value_ints = [-1]> () z = Reshape(y, shape) w = NonZero(x) }"
    )
    assert {s.name: s.size for s in found.symbols} == {
        "B": "",
        "n": "B",
        "m": "8",
        "r": "8*B",
        "k": "",
    }


def test_the_model_is_as_it_was():
    model = text.parse("g (float[?,B] x) => (float[?,B] y) { h = Relu(x) y = Exp(h) }")
    before = canonical(model), str(model)
    smelt.inspect(model, {"B": 3}).work  # noqa: B018
    assert (canonical(model), str(model)) == before


def test_a_model_whose_shapes_contradict_each_other_is_described():
    graph = "g (float[2,3] a, float[4,5] b) => (float[2,5] y) { y = MatMul(a, b) }"
    found = facts(graph)
    assert "contradict" in found.problem
    assert found.operators == {"MatMul": 1}


QDQ = """g (float[2,4] x) => (float[2,3] y) <float s = {0.1}, uint8 z = {3}, int8[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
  q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) v = DequantizeLinear(w, s) h = MatMul(d, v)
  p = QuantizeLinear(h, s, z) y = DequantizeLinear(p, s, z) }"""
WEIGHTS = """g (float[2,4] x) => (float[2,3] y) <float[3] s = {0.1, 0.2, 0.3}, int4[3,4] w = {1,2,3,4,5,6,7,-8,-7,-6,-5,-4}> {
  d = DequantizeLinear<axis=0>(w, s) t = Transpose<perm=[1,0]>(d) y = MatMul(x, t) }"""
QLINEAR = """g (uint8[2,4] x, float s, uint8 z) => (uint8[2,3] y) <int8[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}, int8 o = {0}> {
  y = QLinearMatMul(x, s, z, w, s, o, s, z) }"""
DYNAMIC = """g (float[2,4] x) => (int32[2,3] y) <int8[4,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> {
  q, s, z = DynamicQuantizeLinear(x) y = MatMulInteger(q, w, z) }"""


@pytest.mark.parametrize(
    ("graph", "counts", "weights"),
    [
        (QDQ, {"QDQ, 8 bits": 1}, [("w", 8)]),
        (WEIGHTS, {"weight-only, 4 bits": 1}, [("w", 4)]),
        (QLINEAR, {"QLinear, 8 bits": 1}, [("w", 8)]),
        (DYNAMIC, {"dynamic, 8 bits": 1}, [("w", 8)]),
        ("g (float[2] x) => (float[2] y) { y = Relu(x) }", {}, []),
        ("g (int8[2] x) => (int8[2] y) { y = Abs(x) }", {}, []),
    ],
)
def test_quantization_has_a_format_and_bits(graph, counts, weights):
    found = facts(graph)
    assert bits_counted(found.quantized) == counts
    assert [(value.name, bits) for value, bits in found.quantized_weights] == weights


def test_a_long_chain_is_linear():
    size = ir.Shape([4])
    x = ir.Value(name="x", shape=size, type=ir.TensorType(ir.DataType.FLOAT))
    nodes, value = [], x
    for index in range(20_000):
        nodes.append(ir.node("Relu", [value], name=f"n{index}"))
        value = nodes[-1].outputs[0]
        value.name = f"v{index}"
    graph = ir.Graph([x], [value], nodes=nodes, opset_imports={"": 20}, name="chain")
    found = smelt.inspect(ir.Model(graph, ir_version=9), own=True)
    assert len(found.chains[0]) == 20_000
    assert found.total.flops.value == 80_000


def test_facts_are_one_line():
    assert repr(facts("g (float[2] x) => (float[2] y) { y = Relu(x) }")) == (
        "<Facts of 'g': 1 nodes, 0 weights>"
    )


def test_strings_have_bytes_and_no_work():
    graph = """g (string[2] x) => (bool[2] y) <string[2] words = {"ab", "cde"}> { y = Equal(x, words) }"""
    found = facts(graph)
    assert [(w.type, w.bytes) for w in found.weights] == [("string[2]", 5)]
    assert found.work[0].bytes is None
    assert "string[2]" in model_html(found.model)
