"""Masks of 0 and 1 are computed by float operators for a consumer without operators of bools."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from smelt.ir import text, verify
from smelt.ir.constants import Constants
from smelt.ir.shapes.inference import ShapeInference
from smelt.passes.base import PassContext
from smelt.passes.precision.bools_to_floats import MOST_NODES, bools_to_floats, most_of
from smelt.runtime.inputs import random_inputs
from smelt.runtime.reference import Reference

OF_BOOLS = {"And", "Or", "Xor", "Not", "Equal"}
IDS, MASK = "int64[2,3] ids", "bool[2,3] m"
CASES = {
    "And": "n = Cast<to=9>(ids) c = And(n, m)",
    "Or": "n = Cast<to=9>(ids) c = Or(n, m)",
    "Xor": "n = Cast<to=9>(ids) c = Xor(n, m)",
    "Not": "n = Not(m) c = Identity(n)",
    "Equal": "k = Constant<value_int=1>() n = Equal(ids, k) c = Not(n)",
    "a constant": "t = Constant<value_int=1>() n = Cast<to=9>(t) c = And(m, n)",
    "one value twice": "n = Cast<to=9>(ids) o = And(n, n) c = Or(o, n)",
    "floats that count": "f = Cast<to=1>(m) g = Add(f, f) n = Cast<to=9>(g) c = And(n, m)",
    "a product of masks": "f = Cast<to=1>(m) g = Mul(f, f) n = Cast<to=9>(g) c = Not(n)",
    "a mask of two signs": "i = Neg(ids) n = Cast<to=9>(i) c = And(n, m)",
}
MOVES = {
    "Reshape": ("3,2", "s = Constant<value_ints=[3,2]>() c = Reshape(n, s)"),
    "Unsqueeze": ("2,1,3", "s = Constant<value_ints=[1]>() c = Unsqueeze(n, s)"),
    "Expand": ("2,2,3", "s = Constant<value_ints=[2,1,1]>() c = Expand(n, s)"),
    "Transpose": ("3,2", "c = Transpose(n)"),
    "Slice": (
        "1,3",
        "a = Constant<value_ints=[1]>() z = Constant<value_ints=[2]>() c = Slice(n, a, z)",
    ),
    "Gather": ("2,3", "s = Constant<value_ints=[1,0]>() c = Gather(n, s)"),
    "Concat": ("4,3", "c = Concat<axis=0>(n, m)"),
}
GRAPHS = {
    **{
        name: f"g ({IDS}, {MASK}) => (float[2,3] y) {{ {c} y = Cast<to=1>(c) }}"
        for name, c in CASES.items()
    },
    **{
        name: f"g ({IDS}, {MASK}) => (float[{dims}] y) {{ n = Cast<to=9>(ids) {c} y = Cast<to=1>(c) }}"
        for name, (dims, c) in MOVES.items()
    },
}


def run(model: ir.Model, taken) -> None:
    """Run the pass for a consumer that takes the nodes for which ``taken`` is true."""
    cx = PassContext.of(model)
    cx.kernels, cx.computes = frozenset(), taken
    bools_to_floats.run(cx)
    verify.verify(model)


def takes_floats(node: ir.Node) -> bool:
    return node.outputs[0].dtype != ir.DataType.BOOL


def live_kinds(model: ir.Model) -> set[str]:
    """Return the operators that the results of ``model`` need."""
    todo, found = list(model.graph.outputs), set()
    while todo:
        node = todo.pop().producer()
        if node is not None:
            found.add(node.op_type)
            todo += [value for value in node.inputs if value is not None]
    return found


@pytest.mark.parametrize("to", ["float", "float16"])
@pytest.mark.parametrize("name", GRAPHS)
def test_floats_compute_the_same_mask(name, to) -> None:
    number = {"float": 1, "float16": 10}[to]
    graph = (
        GRAPHS[name]
        .replace("(float[", f"({to}[")
        .replace("y = Cast<to=1>", f"y = Cast<to={number}>")
    )
    source, model = text.parse(graph, 18), text.parse(graph, 18)
    run(model, takes_floats)
    assert not OF_BOOLS & live_kinds(model)
    ids = np.array([[0, 1, 2], [-1, np.iinfo(np.int64).min, np.iinfo(np.int64).max]])
    feeds = [ids, random_inputs(source, {}, mode="normal")[1]]
    with np.errstate(all="ignore"):
        [expected], [found] = (Reference(each)(*feeds) for each in (source, model))
    np.testing.assert_array_equal(found, expected)


KEPT = {
    "floats, of which NaN is true": "g (float[2] x, bool[2] m) => (float[2] y) "
    "{ n = Cast<to=9>(x) c = And(n, m) y = Cast<to=1>(c) }",
    "a sum of floats": "g (float[2] x, bool[2] m) => (float[2] y) "
    "{ f = Cast<to=1>(m) g = Add(f, x) n = Cast<to=9>(g) y = Cast<to=1>(n) }",
    "integers": "g (bool[2] m, bool[2] n) => (int64[2] y) { c = And(n, m) y = Cast<to=7>(c) }",
    "no operator between": "g (bool[2] m) => (float[2] y) { y = Cast<to=1>(m) }",
}


@pytest.mark.parametrize("name", KEPT)
def test_other_casts_stay(name) -> None:
    source, model = text.parse(KEPT[name], 18), text.parse(KEPT[name], 18)
    run(model, takes_floats)
    assert casts_to_bool(model) == casts_to_bool(source)
    assert ("And" in live_kinds(model)) == (name == "integers")


def casts_to_bool(model: ir.Model) -> int:
    casts = [node for node in model.graph if node.op_type == "Cast"]
    return sum(node.attributes["to"].as_int() == ir.DataType.BOOL for node in casts)


def test_what_the_consumer_takes_stays() -> None:
    model = text.parse(GRAPHS["And"], 18)
    run(model, lambda node: True)
    assert [node.op_type for node in model.graph] == ["Cast", "And", "Cast"]


def test_without_a_consumer_nothing_changes() -> None:
    model = text.parse(GRAPHS["And"], 18)
    bools_to_floats.run(PassContext.of(model))
    assert "And" in live_kinds(model)


def test_bools_with_other_readers_stay() -> None:
    graph = (
        f"g ({IDS}, {MASK}) => (float[2,3] y, bool[2,3] c) {{ {CASES['And']} y = Cast<to=1>(c) }}"
    )
    model = text.parse(graph, 18)
    run(model, takes_floats)
    assert {"And", "Mul"} <= live_kinds(model)


def test_long_chains_stay() -> None:
    steps = " ".join(f"c{n + 1} = Not(c{n})" for n in range(MOST_NODES + 1))
    graph = (
        f"g (bool[2] m) => (float[2] y) {{ c0 = Not(m) {steps} y = Cast<to=1>(c{MOST_NODES + 1}) }}"
    )
    model = text.parse(graph, 18)
    run(model, takes_floats)
    assert "Not" in live_kinds(model)


COUNTS = {
    "y = Identity(bits)": 1.0,
    "y = Identity(counts)": np.inf,
    "y = Identity(halves)": None,
    "y = Identity(below)": None,
    "y = Identity(nothing)": None,
    "y = Identity(x)": None,
    "y = Cast<to=1>(m)": 1.0,
    "y = Cast<to=1>(ids)": None,
    "f = Cast<to=1>(ids) y = Abs(f)": np.inf,
    "f = Cast<to=1>(m) y = Abs(f)": 1.0,
    "y = Abs(x)": None,
    "f = Cast<to=1>(m) y = Transpose(f)": 1.0,
    "f = Cast<to=1>(m) y = Mul(f, f)": 1.0,
    "f = Cast<to=1>(m) y = Mul(f, counts)": np.inf,
    "f = Cast<to=1>(m) y = Add(f, f)": np.inf,
    "f = Cast<to=1>(m) y = Add(f, x)": None,
    "y = Clip(counts, zero, one)": 1.0,
    "f = Cast<to=1>(m) g = Add(f, f) y = Clip(g, zero, one)": 1.0,
    "f = Cast<to=1>(m) g = Add(f, f) y = Clip(g, zero, two)": None,
    "y = Clip(x, zero, one)": None,
    "f = Cast<to=1>(m) y = Neg(f)": None,
}


@pytest.mark.parametrize("body", COUNTS)
def test_the_largest_of_counts(body) -> None:
    model = text.parse(
        f"g ({IDS}, {MASK}, float[2,3] x) => (y) <float[3] bits = {{0,1,1}}, "
        "float[3] counts = {0,1,2}, float[3] halves = {0,0.5,1}, float[3] below = {-1,0,1}, "
        f"float[0] nothing = {{}}, float zero = {{0}}, float one = {{1}}, float two = {{2}}> {{ {body} }}"
    )
    ShapeInference(model).infer_model()
    last = model.graph[-1]
    value = last.inputs[0] if last.op_type == "Identity" else last.outputs[0]
    assert most_of(value, Constants()) == COUNTS[body]
