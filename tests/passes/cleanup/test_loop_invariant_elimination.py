"""Values that loops carry unchanged are removed; values that change once stay."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.base import PassContext
from smelt.passes.cleanup.loop_invariant_elimination import loop_invariant_elimination
from smelt.runtime.runner import open_runner


def loop(carried: str, body: str, results: str = "r, s", initial: str = "a, b") -> str:
    """Return a loop of n iterations over float[2] values a and b; c is an outer value."""
    return (
        f"g (int64 n, bool go, float[2] a, float[2] b, float[2] c) => ({typed(results)}) {{ "
        f"{results} = Loop(n, go, {initial}) <body = body (int64 i, bool k{carried}) => {body}> }}"
    )


def typed(names: str) -> str:
    return ", ".join(f"float[2] {name}" for name in names.split(", "))


P, PQ = ", float[2] p", ", float[2] p, float[2] q"
KO = "ko = Identity(k)"
REMOVED = {
    "returned as it came": (
        loop(PQ, f"(bool ko, float[2] t, float[2] u) {{ {KO} t = Add(p, q) u = Identity(q) }}"),
        "g (int64 n, bool go, float[2] a, float[2] b, float[2] c) => (float[2] r, float[2] s) { "
        "s = Identity(b) r = Loop(n, go, a) <body = body (int64 i, bool k, float[2] p) => "
        f"(bool ko, float[2] t) {{ {KO} t = Add(p, b) }}> }}",
    ),
    "the first of two": (
        loop(PQ, f"(bool ko, float[2] t, float[2] u) {{ {KO} t = Identity(p) u = Sub(p, q) }}"),
        "g (int64 n, bool go, float[2] a, float[2] b, float[2] c) => (float[2] r, float[2] s) { "
        "r = Identity(a) s = Loop(n, go, b) <body = body (int64 i, bool k, float[2] q) => "
        f"(bool ko, float[2] u) {{ {KO} u = Sub(a, q) }}> }}",
    ),
    "the outer value that it starts with": (
        loop(PQ, f"(bool ko, float[2] t, float[2] u) {{ {KO} t = Add(p, q) u = Identity(b) }}"),
        "g (int64 n, bool go, float[2] a, float[2] b, float[2] c) => (float[2] r, float[2] s) { "
        "s = Identity(b) r = Loop(n, go, a) <body = body (int64 i, bool k, float[2] p) => "
        f"(bool ko, float[2] t) {{ {KO} t = Add(p, b) }}> }}",
    ),
    "all of them: no loop is left": (
        loop(PQ, f"(bool ko, float[2] t, float[2] u) {{ {KO} t = Identity(p) u = Identity(b) }}"),
        "g (int64 n, bool go, float[2] a, float[2] b, float[2] c) => (float[2] r, float[2] s) { "
        "r = Identity(a) s = Identity(b) }",
    ),
    "read by nothing": (
        loop(PQ, f"(bool ko, float[2] t, float[2] u) {{ {KO} t = Add(p, b) u = Neg(p) }}").replace(
            "(float[2] r, float[2] s)", "(float[2] r)"
        ),
        "g (int64 n, bool go, float[2] a, float[2] b, float[2] c) => (float[2] r) { "
        "r = Loop(n, go, a) <body = body (int64 i, bool k, float[2] p) => "
        f"(bool ko, float[2] t) {{ {KO} t = Add(p, b) }}> }}",
    ),
    "read by another that is carried": (
        loop(PQ, f"(bool ko, float[2] t, float[2] q) {{ {KO} t = Identity(q) }}"),
        "g (int64 n, bool go, float[2] a, float[2] b, float[2] c) => (float[2] r, float[2] s) { "
        "s = Identity(b) r = Loop(n, go, a) <body = body (int64 i, bool k, float[2] p) => "
        f"(bool ko, float[2] t) {{ {KO} t = Identity(b) }}> }}",
    ),
}


@pytest.mark.parametrize("rounds", [0, 1, 3])
@pytest.mark.parametrize(("before", "after"), REMOVED.values(), ids=REMOVED.keys())
def test_removes(before: str, after: str, rounds: int) -> None:
    check_rewrite(loop_invariant_elimination, before, after, feeds=feeds(rounds))


def feeds(rounds: int) -> dict[str, np.ndarray]:
    a, b, c = (np.asarray([n, -n], np.float32) for n in (1, 10, 100))
    return {"n": np.asarray(rounds), "go": np.asarray(True), "a": a, "b": b, "c": c}


BECOMES_OUTER = loop(
    PQ, f"(bool ko, float[2] t, float[2] u) {{ {KO} t = Add(p, q) u = Identity(c) }}"
)


def test_a_value_that_becomes_another_outer_value_is_carried() -> None:
    model = text.parse(BECOMES_OUTER)
    stats = run_pass(loop_invariant_elimination, model)
    assert stats.rewrites == 0
    assert sum(stats.missed.values()) == 1
    check_same_numbers(
        text.parse(BECOMES_OUTER), model, loop_invariant_elimination.exactness, feeds(3)
    )
    _, s = open_runner(model)(*feeds(3).values())
    np.testing.assert_array_equal(s, [100, -100])


KEPT = {
    "another outer value": BECOMES_OUTER,
    "two that trade places": loop(
        PQ, f"(bool ko, float[2] t, float[2] u) {{ {KO} t = Identity(q) u = Identity(p) }}"
    ),
    "a value computed anew": loop(
        PQ, f"(bool ko, float[2] t, float[2] u) {{ {KO} t = Add(p, q) u = Neg(q) }}"
    ),
    "only a condition": loop("", f"(bool ko, float[2] t) {{ {KO} t = Neg(a) }}", "r", "")
    .replace("go, )", "go)")
    .replace("(float[2] r)", "(float[n,2] r)"),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(loop_invariant_elimination, graph)


SCANNED = (
    "g (int64 n, bool go, float[2] a, float[2] b, float[2] c) => "
    "(float[2] r, float[2] s, float[m,2] each, float[m,2] same) { "
    "r, s, each, same = Loop(n, go, a, b) <body = body (int64 i, bool k, float[2] p, float[2] q) "
    f"=> (bool ko, float[2] t, float[2] q, float[2] e, float[2] q) {{ {KO} t = Add(p, q) e = Mul(t, q) }}> }}"
)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_results_of_each_round_follow(rounds: int) -> None:
    source, model = text.parse(SCANNED), text.parse(SCANNED)
    run_pass(loop_invariant_elimination, model)
    [node] = [node for node in model.graph if node.op_type == "Loop"]
    assert (len(node.inputs), len(node.outputs)) == (3, 3)
    check_same_numbers(source, model, loop_invariant_elimination.exactness, feeds(rounds))


def test_values_carried_unchanged_leave_the_inner_and_outer_loop() -> None:
    inner = (
        f"{KO} t, u = Loop(n, k, p, q) <body = inner (int64 j, bool l, float[2] v, float[2] w) => "
        "(bool lo, float[2] x, float[2] z) { lo = Identity(l) x = Add(v, w) z = Identity(w) }>"
    )
    graph = loop(PQ, f"(bool ko, float[2] t, float[2] u) {{ {inner} }}")
    source, model = text.parse(graph), text.parse(graph)
    stats = run_pass(loop_invariant_elimination, model)
    assert stats.fired == {"value carried unchanged": 2}
    check_same_numbers(source, model, loop_invariant_elimination.exactness, feeds(2))


SCAN = """g (float[2] a, float[2] b, float[m,2] xs) => (float[2] r, float[2] s, float[m,2] each) {
    r, s, each = Scan<num_scan_inputs = 1, body = body (float[2] p, float[2] q, float[2] x)
        => (float[2] t, float[2] u, float[2] e) { t = Add(p, x) u = Identity(q) e = Mul(t, q) }>(a, b, xs)
}"""


def test_states_of_a_scan() -> None:
    after = """g (float[2] a, float[2] b, float[m,2] xs) => (float[2] r, float[2] s, float[m,2] each) {
        s = Identity(b)
        r, each = Scan<num_scan_inputs = 1, body = body (float[2] p, float[2] x)
            => (float[2] t, float[2] e) { t = Add(p, x) e = Mul(t, b) }>(a, xs)
    }"""
    check_rewrite(loop_invariant_elimination, SCAN, after)


def test_in_a_function() -> None:
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 23, "f" : 1]>'
        "g (int64 n, bool go, float[2] a, float[2] b) => (float[2] r) { r = f.F(n, go, a, b) }"
        '<domain: "f", opset_import: ["" : 23]> F (n, go, a, b) => (r) {'
        "r, s = Loop(n, go, a, b) <body = body (int64 i, bool k, float[2] p, float[2] q) => "
        "(bool ko, float[2] t, float[2] u) { ko = Identity(k) t = Add(p, q) u = Identity(q) }> }"
    )
    assert run_pass(loop_invariant_elimination, model).rewrites == 1
    [function] = model.functions.values()
    assert len(function[0].inputs) == 3


def test_the_limit_of_edits_leaves_the_loop_whole() -> None:
    before, _ = REMOVED["returned as it came"]
    model = text.parse(before)
    cx = PassContext.of(model)
    cx.rewrites_left = 0
    assert loop_invariant_elimination.run(cx).rewrites == 0
    check_same_numbers(text.parse(before), model, loop_invariant_elimination.exactness, feeds(2))


def test_names_within_the_body_stay_taken() -> None:
    """Constants of later passes are called const_0 and so on, and must not clash."""
    body = f"(bool ko, float[2] const_0, float[2] u) {{ {KO} const_0 = Neg(p) u = Identity(q) }}"
    model = text.parse(loop(PQ, body))
    run_pass(loop_invariant_elimination, model)
    builder = PassContext.of(model).rewriter().builder(model.graph[0], [], "rule")
    assert builder.const_i64([1]).name == "const_1"
