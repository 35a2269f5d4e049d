"""If, Loop and Scan of ONNX on C, between guard bytes, and on the host."""

from __future__ import annotations

import numpy as np
import pytest
from both_targets import BothTargets, on_host
from c_library import compile_text, random_inputs

from smelt.errors import ErrorList, SmeltError
from smelt.ir import text


def loop(body: str, head: str = "n, c, x", types: str = "float[3] o", more: str = "") -> str:
    return (
        f"g (int64 n, bool c, float[3] x) => ({types}) "
        f"{{ {more} {types.replace('float[3] ', '').replace('float[A,B] ', '')} = Loop({head}) <body = b "
        f"(int64 i, bool k, float[3] v) => {body}> }}"
    )


STEP = "(bool go, float[3] w) { go = Identity(k) w = Add(v, x) }"
FIVE = "m = Constant<value_int = 5>()"
GRAPHS = {
    "loop that is counted": loop(STEP),
    "loop that stops itself": loop(
        "(bool go, float[3] w) { w = Add(v, x) s = ReduceMax<keepdims = 0>(w)"
        " t = Constant<value_float = 4.0>() go = Less(s, t) }"
    ),
    "loop without a count": loop(
        "(bool go, float[3] w) { w = Add(v, x) s = ReduceMax<keepdims = 0>(w)"
        " t = Constant<value_float = 9.0>() go = Less(s, t) }",
        ", c, x",
    ),
    "loop with rows": loop(
        "(bool go, float[3] w, float[3] r) { go = Identity(k) w = Add(v, x) r = Mul(w, w) }",
        "m, , x",
        "float[3] o, float[A,B] p",
        FIVE,
    ),
    "loop that swaps": (
        "g (int64 n, bool c, float[3] x, float[3] y) => (float[3] o, float[3] p) { o, p = Loop(n, c, x, y)"
        " <body = b (int64 i, bool k, float[3] v, float[3] w) => (bool go, float[3] w2, float[3] v2)"
        " { go = Identity(k) w2 = Identity(w) v2 = Add(v, w) }> }"
    ),
    "loop over the iteration": loop(
        "(bool go, float[3] w) { go = Identity(k) f = Cast<to = 1>(i) w = Add(v, f) }"
    ),
    "loop in a loop": loop(
        "(bool go, float[3] w) { go = Identity(k) w = Loop(n, c, v) <body = inner "
        "(int64 j, bool l, float[3] a) => (bool on, float[3] b) "
        "{ on = Identity(l) h = Mul(a, x) b = Add(h, v) }> }"
    ),
    "branch that returns what is around": (
        "g (bool c, float[3] x) => (float[3] o, float[3] p) { y = Neg(x) o, p = If(c) "
        "<then_branch = t () => (float[3] a, float[3] b) { a = Identity(y) b = Identity(y) },"
        " else_branch = e () => (float[3] d, float[3] f) { d = Abs(x) f = Mul(d, y) }> }"
    ),
    "scan both ways": (
        "g (float[3] x, float[4,3] r, float[3,4] q) => (float[3] o, float[4,3] p, float[3,4] s) "
        "{ o, p, s = Scan<num_scan_inputs = 2, scan_input_axes = [0,1], scan_output_axes = [0,1],"
        " scan_input_directions = [1,0], scan_output_directions = [0,1], body = b "
        "(float[3] v, float[3] a, float[3] z) => (float[3] w, float[3] u, float[3] y)"
        " { u = Add(v, a) w = Mul(u, z) y = Sub(w, x) }>(x, r, q) }"
    ),
    "scan without states": (
        "g (float[4,3] r) => (float[4] o) { o = Scan<num_scan_inputs = 1, body = b "
        "(float[3] a) => (float[] w) { w = ReduceSum<keepdims = 0>(a) }>(r) }"
    ),
}


@pytest.fixture(scope="module")
def library() -> BothTargets:
    return BothTargets(GRAPHS, opset=21)


@pytest.mark.parametrize("going", [True, False])
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("name", GRAPHS)
def test_agrees(library: BothTargets, name: str, count: int, going: bool) -> None:
    source = library.models[name].source
    inputs = [np.abs(array) for array in random_inputs(source)]
    for place, value in enumerate(source.graph.inputs):
        if value.name in ("n", "c"):
            inputs[place] = np.array(count) if value.name == "n" else np.array(going)
    library.check_both(name, inputs)


def test_a_size_that_the_loop_decides_is_refused() -> None:
    grown = "g (int64 n, bool c, float[3] x) => (float[A,B] o) { y, o = Loop(n, c, x) <body = b (int64 i, bool k, float[3] v) => (bool go, float[3] w, float[3] r) { go = Identity(k) w = Neg(v) r = Abs(v) }> }"
    with pytest.raises((SmeltError, ErrorList), match="E411 the size"):
        compile_text(grown)


def test_branches_of_other_ranks_are_refused() -> None:
    uneven = "g (bool c, float[3] x) => (float[N] o) { o = If(c) <then_branch = t () => (float[3] a) { a = Neg(x) }, else_branch = e () => (float s) { s = ReduceSum<keepdims = 0>(x) }> }"
    with pytest.raises(SmeltError, match="the branches give 'o' the sizes"):
        compile_text(uneven)


def test_symbolic_sizes_wait_for_the_call_on_the_host() -> None:
    graph = "g (int64 n, bool c, float[N] x) => (float[N] o) { o = Loop(n, c, x) <body = b (int64 i, bool k, float[N] v) => (bool go, float[N] w) { go = Identity(k) w = Add(v, x) }> }"
    for size in (2, 5):
        x = np.arange(size, dtype=np.float32)
        (got,) = on_host(text.parse(graph, 21), [np.array(3), np.array(True), x])
        np.testing.assert_array_equal(got, 4 * x)


def test_bodies_read_weights_that_the_caller_holds() -> None:
    graph = "g (int64 n, bool c, float[2] x) => (float[2] o) <float[2] s = {2, 3}> { o = Loop(n, c, x) <body = b (int64 i, bool k, float[2] v) => (bool go, float[2] w) { go = Identity(k) w = Mul(v, s) }> }"
    run = compile_text(graph, weights="bin").load()
    (got,) = run(np.array(2), np.array(True), np.ones(2, np.float32))
    np.testing.assert_array_equal(got, [4, 9])
