"""Dims of any name or text, and sizes of any height, end a compile soon or do not matter."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smelt
from smelt.errors import ResourceLimit
from smelt.ir.symbolic_dims.dim_texts import LONGEST, is_plain, symbolic_dim

PLAIN = [
    "N",
    "N" * 100_000,
    "N + 1",
    "2*N - floor(M/4)",
    "N**2",
    "Max(0, N - 3)",
    "(a + b)//c % 5",
    "(a)*(b)",
]
OPAQUE = [
    "batch size",
    "9**9**9**9",
    "**".join("B" * 40),
    "N**99",
    "+".join(f"a{i}" for i in range(20_000)),
    "(" * 5000 + "a" + ")" * 5000,
    "max(" * 200 + "a" + ", b)" * 200,
    "__import__('os').system('true')",
    "1" * 100_000,
    "N + ",
    "N // 0",
    " " * 900 + "!",
    "a" * 900 + "!",
    "/" * 900 + "!",
]


@pytest.mark.parametrize("text", PLAIN, ids=lambda text: text[:20])
def test_short_arithmetic_is_computed_with(text: str) -> None:
    assert is_plain(text)
    assert (symbolic_dim(text) - symbolic_dim(text) + 1).value == "1"


@pytest.mark.parametrize("text", OPAQUE, ids=lambda text: text[:20])
def test_any_other_text_is_a_name(text: str) -> None:
    dim = symbolic_dim(text)
    assert dim.free_symbols() == {text}
    assert (2 * dim - dim).value == text


def model(dim: str | int, *nodes: onnx.NodeProto, **constants: object) -> onnx.ModelProto:
    """Nodes from x and w of ``[dim, 2]`` to y."""
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [dim, 2]) for name in "xw"]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    held = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", given, [output], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.mark.parametrize("text", [*PLAIN, *OPAQUE], ids=lambda text: text[:20])
def test_a_dim_keeps_its_text_and_costs_little(text: str) -> None:
    nodes = [
        helper.make_node("Add", ["x", "w"], ["a"]),
        helper.make_node("Reshape", ["a", "s"], ["y"]),
    ]
    optimized = smelt.optimize(model(text, *nodes, s=[-1]))
    assert optimized.graph.input[0].type.tensor_type.shape.dim[0].dim_param == text


def doubled(times: int, dim: int | str) -> onnx.ModelProto:
    names = ["x", *(f"y{i}" for i in range(times - 1)), "y"]
    pairs = pairwise(names)
    return model(dim, *(helper.make_node("Concat", [a, a], [b], axis=0) for a, b in pairs))


def test_a_size_beyond_all_numbers_is_refused() -> None:
    with pytest.raises(ResourceLimit, match="elements along one axis") as caught:
        smelt.optimize(doubled(150, 2))
    assert caught.value.code == "E501"
    assert "(Concat)" in caught.value.at[0]
    smelt.optimize(doubled(60, 2))
    smelt.optimize(doubled(150, "N"))


def test_expressions_stop_growing() -> None:
    """Each element is the square of the last and the last: the text doubles with each step."""
    nodes = [helper.make_node("Shape", ["x"], ["s0"])]
    for i in range(40):
        nodes.append(helper.make_node("Mul", [f"s{i}", f"s{i}"], [f"t{i}"]))
        nodes.append(helper.make_node("Add", [f"t{i}", f"s{i}"], [f"s{i + 1}"]))
    nodes.append(helper.make_node("Expand", ["one", "s40"], ["y"]))
    optimized = smelt.optimize(model("N", *nodes, one=np.float32([1])))
    texts = [
        dim.dim_param
        for value in optimized.graph.value_info
        for dim in value.type.tensor_type.shape.dim
    ]
    assert all(len(text) <= LONGEST for text in texts)


def test_any_text_names_a_dim_beside_a_branch() -> None:
    """Models with graphs in them are inferred by the walk of the library, which reads all names."""
    graph = """agraph (bool c, float[B, 2] x) => (float[Q, 2] y) {
        y = If(c) <then_branch = a () => (float[B, 2] p) { p = Relu(x) },
                   else_branch = b () => (float[B, 2] q) { q = Neg(x) }> }"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {graph}')
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "quant::Resize 0"
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "N::0 ("
    result = smelt.optimize(model)
    assert result.graph.input == model.graph.input
    assert result.graph.output == model.graph.output
