"""Time grows with the nodes, not with their square, and no chain is too long to follow.

A chain of four times the nodes may take four times as long, give or take the noise of a machine
that does other work, too; a quadratic step takes sixteen times as long.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import smelt

SHORT, FACTOR, NOISE = 400, 4, 2.2
"""Nodes; how many times as many; and how much slower each of them may be."""

CONSTANTS = {
    "shape": np.array([2, 4]),
    "flat": np.array([8]),
    "axis": np.array([0]),
    "last": np.array([-1]),
    "end": np.array([np.iinfo(np.int64).min]),
    "far": np.array([np.iinfo(np.int64).max]),
    "ones": np.array([1, 1]),
    "no_pads": np.zeros(4, np.int64),
    "swap": np.array([1, 0]),
    "one": np.float32(1),
    "six": np.float32(6),
    "scale": np.float32(0.1),
    "zero_point": np.int8(0),
    "mask": np.array([[True, False, True, False]]),
    "none": np.zeros((0, 4), np.float32),
    "w": np.eye(4, dtype=np.float32),
}

LINKS = {
    "Identity": "{y} = Identity({x})",
    "Cast": "{y} = Cast<to = 1>({x})",
    "Cast there and back": "{y}_m = Cast<to = 11>({x}) {y} = Cast<to = 1>({y}_m)",
    "Reshape": "{y} = Reshape({x}, shape)",
    "Reshape there and back": "{y}_m = Reshape({x}, flat) {y} = Reshape({y}_m, shape)",
    "Transpose": "{y}_m = Transpose({x}) {y} = Transpose({y}_m)",
    "Add": "{y} = Add({x}, one)",
    "Add to itself": "{y} = Add({x}, {x})",
    "Unsqueeze and Squeeze": "{y}_m = Unsqueeze({x}, axis) {y} = Squeeze({y}_m, axis)",
    "Flatten": "{y} = Flatten({x})",
    "Slice of all": "{y} = Slice({x}, axis, far)",
    "Slice back to front": "{y} = Slice({x}, last, end, axis, last)",
    "Concat of one": "{y} = Concat<axis = 0>({x})",
    "Concat with nothing": "{y} = Concat<axis = 0>({x}, none)",
    "Dropout": "{y} = Dropout({x})",
    "Relu": "{y} = Relu({x})",
    "Clip": "{y} = Clip({x}, scale, six)",
    "Max": "{y} = Max({x}, one)",
    "Quantize and dequantize": "{y}_m = QuantizeLinear({x}, scale, zero_point) "
    "{y} = DequantizeLinear({y}_m, scale, zero_point)",
    "Where": "{y} = Where(mask, {x}, one)",
    "MatMul": "{y} = MatMul({x}, w)",
    "Pad": "{y} = Pad({x}, no_pads)",
    "Expand": "{y} = Expand({x}, shape)",
    "Tile": "{y} = Tile({x}, ones)",
    "Gather": "{y} = Gather({x}, swap)",
    "Neg": "{y} = Neg({x})",
    "Softmax": "{y} = Softmax({x})",
    "Sigmoid times itself": "{y}_m = Sigmoid({x}) {y} = Mul({y}_m, {x})",
    "Div": "{y} = Div({x}, six)",
    "Split and Concat": "{y}_a, {y}_b = Split<num_outputs = 2>({x}) "
    "{y} = Concat<axis = 0>({y}_b, {y}_a)",
}


QUICK = ("Identity", "Reshape there and back", "Clip")
"""Those of the quick suite: each stopped a run, or took quadratic time, at some time."""


def some(name: str) -> object:
    return name if name in QUICK else pytest.param(name, marks=pytest.mark.slow)


def chain(link: str, count: int, start: str = "x") -> onnx.ModelProto:
    """``count`` links after ``start``, an input or a constant, and a Neg at the end."""
    pattern = onnx.parser.parse_graph(
        "g (float[2,4] x) => (float[2,4] y) { " + link.format(x="X", y="Y") + " }"
    )
    nodes = []
    previous = start
    for index in range(count):
        names = {"X": previous}
        for node in pattern.node:
            names |= {name: f"{name}{index}" for name in node.output}
        for node in pattern.node:
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.input[:] = [names.get(name, name) for name in node.input]
            copy.output[:] = [names[name] for name in node.output]
            nodes.append(copy)
        previous = names["Y"]
    nodes.append(helper.make_node("Sub", ["x", previous], ["y"]))
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 4]) for name in "xy")
    held = CONSTANTS | {"c": np.ones((2, 4), np.float32)}
    weights = [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


Chains: TypeAlias = Callable[..., onnx.ModelProto]


def seconds(run: Callable[[onnx.ModelProto], object], model: onnx.ModelProto) -> float:
    started = time.process_time()
    run(model)
    return time.process_time() - started


def is_linear(
    run: Callable[[onnx.ModelProto], object],
    link: str,
    *start: str,
    of: Chains = chain,
    links: int = SHORT,
) -> bool:
    """True if one of three tries finds each node of the long chain about as fast as of the short,
    which has ``links``."""
    run(of(link, 10, *start))
    short, long = (of(link, count, *start) for count in (links, links * FACTOR))
    for _ in range(3):
        spent = max(seconds(run, short), 0.05)
        if seconds(run, long) <= spent * FACTOR * NOISE:
            return True
    return False


@pytest.mark.parametrize("name", [some(name) for name in LINKS])
def test_optimize_takes_linear_time(name: str) -> None:
    assert is_linear(smelt.optimize, LINKS[name])


CONSTANT_LINKS = ("Identity", "Cast there and back", "Add")


@pytest.mark.parametrize("name", [some(name) for name in CONSTANT_LINKS])
def test_chains_of_constants_take_linear_time(name: str) -> None:
    assert is_linear(smelt.optimize, LINKS[name], "c")
    assert len(smelt.optimize(chain(LINKS[name], 100, start="c")).graph.node) == 1


GROWING = {
    "Concat behind": "Concat<axis = 0>({x}, z)",
    "Concat in front": "Concat<axis = 0>(z, {x})",
    "Concat of both": "Concat<axis = 0>({x}, start)",
    "Pad": "Pad({x}, pads)",
    "Slice in front": "Slice({x}, one, far, zero)",
    "Slice of every second row": "Slice({x}, zero, far, zero, two)",
}
"""Links whose results have a shape of their own each, which depends on a symbolic size."""


@pytest.mark.parametrize(
    "name",
    [
        n if n in ("Concat behind", "Slice in front") else pytest.param(n, marks=pytest.mark.slow)
        for n in GROWING
    ],
)
def test_chains_of_growing_values_take_linear_time(name: str) -> None:
    assert is_linear(smelt.optimize, GROWING[name], of=growing, links=SHORT // 4)


def growing(link: str, count: int, start: str = "start") -> onnx.ModelProto:
    """``count`` links after an input of N rows, and a Neg at the end."""
    values = [start, *(f"v{i}" for i in range(count))]
    links = (f"{y} = {link.format(x=x)} " for x, y in itertools.pairwise(values))
    return onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]>\n'
        "g (float[N,4] start, float[1,4] z) => (float[M,4] y) "
        "<int64[4] pads = {0, 0, 1, 0}, int64[1] zero = {0}, int64[1] one = {1}, "
        f"int64[1] two = {{2}}, int64[1] far = {{9223372036854775807}}> {{ {''.join(links)} y = Neg({values[-1]}) }}"
    )


JOINS = {
    "Concat": ("float", "Concat<axis = 0>"),
    "Concat of integers": ("int64", "Concat<axis = 0>"),
    "Sum": ("float", "Sum"),
}


@pytest.mark.parametrize(
    "name", [n if n == "Sum" else pytest.param(n, marks=pytest.mark.slow) for n in JOINS]
)
def test_folded_operands_of_one_node_take_linear_time(name: str) -> None:
    assert is_linear(smelt.optimize, *JOINS[name], of=joined)
    assert len(smelt.optimize(joined(*JOINS[name][:1], 10, JOINS[name][1])).graph.node) == 1


def joined(dtype: str, count: int, operator: str) -> onnx.ModelProto:
    """One node that joins an input and ``count`` constants, each negated by a node of its own."""
    constants = (f"{dtype}[3] c{i} = {{{i}, 1, 2}}" for i in range(count))
    links = (f"v{i} = Neg(c{i}) " for i in range(count))
    operands = ", ".join(f"v{i}" for i in range(count))
    return onnx.parser.parse_model(
        '<ir_version: 10, opset_import: ["" : 20]>\n'
        f"g ({dtype}[3] x) => ({dtype}[M] y) <{', '.join(constants)}> "
        f"{{ {''.join(links)} y = {operator}(x, {operands}) }}"
    )


COMPILED = (
    "Identity",
    "Reshape there and back",
    "Add",
    "Relu",
    "Add to itself",
    "Where",
    "Softmax",
)


@pytest.mark.parametrize("target", ["host", "c"])
@pytest.mark.parametrize("name", [some(name) for name in COMPILED])
def test_compile_takes_linear_time(name: str, target: str) -> None:
    assert is_linear(lambda model: smelt.compile(model, target=target), LINKS[name])


@pytest.mark.slow
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS.keys())
def test_twenty_thousand(link: str) -> None:
    model = chain(link, 20_000)
    assert smelt.compile(model).files
