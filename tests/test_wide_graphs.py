"""A node with thousands of operands, results or readers costs as much as as many small nodes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from sampling import sampled

import smelt

SMALL, FACTOR = 150, 4
SLACK = 1.5
"""How much more than proportional the work may be: tables grow, and small parts are constant."""

Names = Sequence[str]


def names(stem: str, count: int) -> list[str]:
    return [f"{stem}{index}" for index in range(count)]


def floats(given: Iterable[str], shape: Sequence[int] = (1,)) -> list[onnx.ValueInfoProto]:
    return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in given]


def constants(given: Iterable[str]) -> list[onnx.TensorProto]:
    return [
        numpy_helper.from_array(np.array([index], np.float32), name)
        for index, name in enumerate(given)
    ]


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def node(kind: str, inputs: Names, outputs: Names, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(kind, inputs, outputs, **attributes)


def concat_of_constants(n: int) -> onnx.ModelProto:
    nodes = [node("Concat", names("c", n), ["k"], axis=0), node("Add", ["x", "k"], ["y"])]
    return model(nodes, floats(["x"]), floats(["y"], [n]), constants(names("c", n)))


def concat_of_identities(n: int) -> onnx.ModelProto:
    nodes = [node("Identity", [f"x{i}"], [f"i{i}"]) for i in range(n)]
    nodes.append(node("Concat", names("i", n), ["y"], axis=0))
    return model(nodes, floats(names("x", n)), floats(["y"], [n]))


def variadic(kind: str) -> Callable[[int], onnx.ModelProto]:
    def of(n: int) -> onnx.ModelProto:
        nodes = [node(kind, ["x", *names("c", n), *names("x", n)], ["y"])]
        inputs = floats(["x", *names("x", n)])
        return model(nodes, inputs, floats(["y"]), constants(names("c", n)))

    return of


def sequence(n: int) -> onnx.ModelProto:
    nodes = [
        node("SequenceConstruct", names("x", n), ["s"]),
        node("ConcatFromSequence", ["s"], ["y"], axis=0),
    ]
    return model(nodes, floats(names("x", n)), floats(["y"], [n]))


def einsum(n: int) -> onnx.ModelProto:
    equation = ",".join(["i"] * n) + "->i"
    nodes = [node("Einsum", names("x", n), ["y"], equation=equation)]
    return model(nodes, floats(names("x", n)), floats(["y"]))


def loop(n: int) -> onnx.ModelProto:
    count = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    go_on, still = (helper.make_tensor_value_info(c, TensorProto.BOOL, []) for c in ("c", "d"))
    steps = [node("Identity", ["c"], ["d"])]
    steps += [node("Neg", [f"a{i}"], [f"b{i}"]) for i in range(n)]
    carried, results = floats(names("a", n)), floats(names("b", n))
    body = helper.make_graph(steps, "b", [count, go_on, *carried], [still, *results])
    nodes = [node("Loop", ["m", "", *names("x", n)], names("y", n), body=body)]
    trips = [numpy_helper.from_array(np.array(3), "m")]
    return model(nodes, floats(names("x", n)), floats(names("y", n)), trips)


def branches(n: int) -> onnx.ModelProto:
    sides = [
        helper.make_graph(
            [node(kind, ["x"], [f"{s}{i}"]) for i in range(n)], s, [], floats(names(s, n))
        )
        for s, kind in (("t", "Neg"), ("e", "Abs"))
    ]
    nodes = [node("If", ["c"], names("y", n), then_branch=sides[0], else_branch=sides[1])]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return model(nodes, [*floats(["x"]), condition], floats(names("y", n)))


def interface(n: int) -> onnx.ModelProto:
    nodes = [node("Neg", [f"x{i}"], [f"n{i}"]) for i in range(n)]
    nodes += [node("Neg", [f"n{i}"], [f"y{i}"]) for i in range(n)]
    return model(nodes, floats(names("x", n)), floats(names("y", n)))


def readers(n: int) -> onnx.ModelProto:
    nodes = [node("Transpose", ["x"], ["r"], perm=[1, 0])]
    kinds = ("Relu", "Abs", "Exp", "Sigmoid")
    nodes += [node(kinds[i % 4], ["r"], [f"y{i}"]) for i in range(n)]
    return model(nodes, floats(["x"], [2, 3]), floats(names("y", n), [3, 2]))


def pieces(n: int) -> onnx.ModelProto:
    nodes = [node("Split", ["x"], names("s", n), axis=0, num_outputs=n)]
    nodes += [node("Neg", [f"s{i}"], [f"n{i}"]) for i in range(n)]
    nodes += [node("Concat", names("n", n), ["y"], axis=0)]
    return model(nodes, floats(["x"], [n]), floats(["y"], [n]))


CASES: dict[str, Callable[[int], onnx.ModelProto]] = {
    "a Concat of constants": concat_of_constants,
    "a Concat of Identities": concat_of_identities,
    **{f"a {kind}": variadic(kind) for kind in ("Sum", "Max", "Min", "Mean")},
    "a sequence": sequence,
    "an Einsum": einsum,
    "a Loop": loop,
    "an If": branches,
    "inputs and outputs": interface,
    "readers of one value": readers,
    "pieces of a Split": pieces,
}


def work(proto: onnx.ModelProto) -> int:
    """Python calls that it takes to optimize a model; the same in every run."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        smelt.optimize(proto)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("make", sampled(CASES.values(), 2), ids=CASES)
def test_the_work_is_proportional_to_the_width(make: Callable[[int], onnx.ModelProto]) -> None:
    work(make(3))  # what is looked up once
    narrow, wide = work(make(SMALL)), work(make(SMALL * FACTOR))
    assert wide <= narrow * FACTOR * SLACK
