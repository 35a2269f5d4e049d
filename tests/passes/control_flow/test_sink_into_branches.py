"""Readers of an If move into its branches if the branches differ in rank."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_unchanged
from sized_library import Sized, SizedLibrary

from smelt.compiler import optimize_model
from smelt.errors import ErrorList
from smelt.ir import text
from smelt.passes.control_flow import sink_into_branches as module
from smelt.passes.control_flow.sink_into_branches import sink_into_branches


def branch(then: str, other: str, results: str = "p", condition: str = "c") -> str:
    """Return an If whose branches return ``results``."""
    q = ", ".join(f"{name}2" for name in results.split(", "))
    return (
        f"If<then_branch = t () => ({results}) {{ {then} }}, "
        f"else_branch = e () => ({q}) {{ {other} }}>({condition})"
    )


X = "g (float[A,B] x, bool c) =>"
KEPT = "a = Constant<value_ints=[0]>() r = " + branch("p = Unsqueeze(x, a)", "p2 = Neg(x)")
FLAT = "m = Constant<value_ints=[-1]>() y = Reshape({}, m)"
SIZES = {"A": (1, 5), "B": (1, 3)}
MODELS = {
    "a scalar and a vector": Sized(
        "g (float[A] x, bool c) => (float[M] y) { r = "
        + branch("p = ReduceSum<keepdims=0>(x)", "p2 = ReduceMax<keepdims=1>(x)")
        + f" {FLAT.format('r')} }}",
        {"A": (1, 5)},
    ),
    "several nodes": Sized(
        f"{X} (float[M] y) {{ {KEPT} u = Exp(r) v = Add(u, x) {FLAT.format('v')} }}", SIZES
    ),
    "an operand that is computed later": Sized(
        f"{X} (float[M] y, float[A,B] w) {{ {KEPT} w = Tanh(x) v = Mul(r, w) {FLAT.format('v')} }}",
        SIZES,
    ),
    "an operand that hangs on another result": Sized(
        f"{X} (float[M] y, float[A,B] k, float[A,B] n) {{ a = Constant<value_ints=[0]>() r, k = "
        + branch("p = Unsqueeze(x, a) s = Exp(x)", "p2 = Neg(x) s2 = Cos(x)", "p, s")
        + f" n = Sin(k) v = Add(r, n) {FLAT.format('v')} }}",
        SIZES,
    ),
    "two readers": Sized(
        f"{X} (float[M] y, float s) {{ {KEPT} s = ReduceMax<keepdims=0>(r) {FLAT.format('r')} }}",
        SIZES,
    ),
    "a squeeze that a size decides, and another of its result": Sized(
        "g (float[A,B,2] x) => (float[M] y) { o = Constant<value_ints=[1]>() "
        "h = Shape<start=1,end=2>(x) c = Equal(h, o) r = "
        + branch("p = Squeeze(x, o)", "p2 = Neg(x)")
        + " z = Constant<value_ints=[0]>() h2 = Shape<start=0,end=1>(r) c2 = Equal(h2, o) w = "
        + branch("p = Squeeze(r, z)", "n = Exp(r) p2 = Cos(n)", condition="c2")
        + f" v = Sin(w) {FLAT.format('v')} }}",
        SIZES,
    ),
    "inside of a Loop": Sized(
        "g (float[A] x, int64 n) => (float y) { t = Constant<value=bool {1}>() "
        "z = Constant<value_float=0.0>() y = Loop(n, t, z) <body = b (int64 i, bool c, float s) "
        "=> (bool d, float f) { d = Identity(c) two = Constant<value=int64 {2}>() m = Mod(i, two) "
        "w = Cast<to=9>(m) r = "
        + branch(
            "p = ReduceSum<keepdims=0>(x)", "p2 = ReduceMax<keepdims=1>(x)", condition="w"
        ).replace("t ()", "th ()")
        + " q = Squeeze(r) f = Add(s, q) }> }",
        {"A": (1, 5)},
    ),
}


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnx_runtime(library: SizedLibrary, name: str) -> None:
    for seed in range(4):
        for sizes in MODELS[name].trials(1):
            library.check(name, sizes, seed)


def moved(source: str) -> list[str]:
    model = text.parse(source, 19)
    optimize_model(model, pipeline="sink-into-branches")
    return [node.op_type for node in model.graph if node.op_type != "Constant"]


def test_no_more_moves_than_has_to() -> None:
    """The Reshape is the last moved node: its result has one rank."""
    source = f"{X} (float[M] z) {{ {KEPT} u = Exp(r) {FLAT.format('u')} z = Neg(y) }}"
    assert moved(source) == ["If", "Neg"]


def test_a_branch_reads_what_was_computed_after_the_if() -> None:
    source = MODELS["an operand that is computed later"].graph
    assert moved(source) == ["Tanh", "If"]


UNCHANGED = {
    "equal ranks": f"{X} (float[A,B] y) {{ r = {branch('p = Exp(x)', 'p2 = Neg(x)')} y = Cos(r) }}",
    "other sizes of one rank": f"{X} (float[M,N] y) {{ r = "
    + branch("p = Exp(x)", "p2 = Concat<axis=0>(x, x)")
    + " y = Cos(r) }",
    "a result of the graph": f"{X} (r) {{ {KEPT} }}",
    "what becomes a result of the graph": f"{X} (y) {{ {KEPT} y = Cos(r) }}",
    "read by a Loop": f"{X} (float y) {{ {KEPT} n = Constant<value=int64 {{3}}>() "
    "t = Constant<value=bool {1}>() z = Constant<value_float=0.0>() y = Loop(n, t, z) <body = b "
    "(int64 i, bool k, float s) => (bool d, float f) { d = Identity(k) q = ReduceSum<keepdims=0>(r) "
    "f = Add(s, q) }> }",
}


@pytest.mark.parametrize("source", UNCHANGED.values(), ids=UNCHANGED)
def test_unchanged(source: str) -> None:
    check_unchanged(sink_into_branches, source)


def test_a_tail_that_is_too_long_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_MOVED", 2)
    check_unchanged(sink_into_branches, MODELS["several nodes"].graph)


def test_a_rewrite_that_would_stop_halfway_is_none() -> None:
    model = text.parse(MODELS["several nodes"].graph, 19)
    optimize_model(model, pipeline="sink-into-branches", rewrites=2)
    assert [node.op_type for node in model.graph][-3:] == ["Add", "Constant", "Reshape"]


def test_a_result_of_two_ranks_is_refused_with_what_to_do() -> None:
    with pytest.raises(ErrorList, match=r"E201 operator If [\s\S]*\n  fix   reshape"):
        Sized(UNCHANGED["a result of the graph"], SIZES).compile()


def test_nan_and_infinity_pass(library: SizedLibrary) -> None:
    x = np.array([[np.nan, -np.inf], [np.inf, -0.0]], np.float32)
    got, largest = library.run("two readers", x, np.array(False))
    np.testing.assert_array_equal(got, -x.ravel())
    assert np.isnan(largest)
