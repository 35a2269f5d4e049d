"""Data-dependent sizes in bodies of loops and branches, and states that grow, on the target c."""

from __future__ import annotations

import numpy as np
import pytest
from sized_library import Sized, SizedLibrary, weights

from smelt.errors import ErrorList, UsageError

FIRST = np.array([0])


def loop(
    given: str, made: str, state: str, body: str, count: int | None = 5, after: str = ""
) -> str:
    """Return a model in which ``y`` is the result of a loop whose iterations run ``body`` on the
    state ``s``; the body also reads the iteration number ``i``, ``e`` and the axis ``a``.
    """
    times = "" if count is None else f"n = Constant<value=int64 {{{count}}}>() "
    head, (start, kind) = "d = Identity(c) ", state.split(":")
    inner = (
        f"b (int64 i, bool c, {kind.replace('?', 'k')} s) => (bool d, {kind.replace('?', 'l')} e)"
    )
    return (
        f"g ({given}) => ({made}) {{ {times}t = Constant<value=bool {{1}}>() "
        f"y = Loop(n, t, {start}) <body = {inner} {{ {head}{body} }}> {after} }}"
    )


def branch(condition: str, made: str, then: str, other: str) -> str:
    return (
        f"If<then_branch = tb () => ({made} p) {{ {then} }}, "
        f"else_branch = eb () => ({made.replace('?', 'R')} q) {{ {other} }}>({condition})"
    )


INNER = (
    "two = Constant<value=int64 {2}>() e = Loop(two, c, s) <body = j (int64 i2, bool c2, "
    "float[k2] s2) => (bool d2, float[l2] e2) { d2 = Identity(c2) f = ReduceMax<keepdims=1>"
    "(s2, a) e2 = Concat<axis=0>(s2, f) }>"
)
"""A body in which a loop of two rounds makes the state grow by one each."""

GROWN = "f = ReduceMax<keepdims=1>(s, a) e = Concat<axis=0>(s, f)"
ODD = "o = Constant<value=int64 {2}>() m = Mod(i, o) w = Cast<to=9>(m) "
FOUND = "z = NonZero(x) r = Transpose(z) v = GatherND(x, r) "
X = "float[B,2] x, int64[1] a"
B = {"B": (1, 4)}
A = {"a": FIRST}
MODELS = {
    "a number of rounds": Sized(loop(X, "float[N,2] y", "x:float[?,2]", GROWN), B, A),
    "rounds told by an input, bounded by the result": Sized(
        loop(f"int64 n, {X}", "float[N,2] y", "x:float[?,2]", GROWN, None), B | {"N": (1, 9)}, A
    ),
    "as many rounds as rows": Sized(
        "g (float[B,2] x, int64[1] a) => (float[N,2] y, float s) { h = Shape<start=0,end=1>(x) "
        "n = Squeeze(h) t = Constant<value=bool {1}>() y = Loop(n, t, x) <body = b (int64 i, bool c, "
        f"float[k,2] s) => (bool d, float[l,2] e) {{ d = Identity(c) {GROWN} }}> "
        "s = ReduceSum<keepdims=0>(y) }",
        B,
        A,
    ),
    "by rows of an input, from nothing": Sized(
        loop(
            "float[B,2] x, float[0,2] none",
            "float[N,2] y",
            "none:float[?,2]",
            "v = Exp(x) e = Concat<axis=0>(s, v)",
        ),
        B,
        {"none": np.zeros((0, 2), np.float32)},
    ),
    "doubled": Sized(
        loop("float[B] x", "float[N] y", "x:float[?]", "e = Concat<axis=0>(s, s)", 3),
        B | {"N": (1, 32)},
    ),
    "along another axis, of bytes": Sized(
        loop(
            "int8[2,B] x, int64[1] o",
            "int8[2,N] y",
            "x:int8[2,?]",
            "f = ReduceMax<keepdims=1>(s, o) e = Concat<axis=1>(f, s)",
        ),
        B,
        {"o": np.array([1])},
    ),
    "doubled, within what the rounds make of it": Sized(
        loop(
            "float[B] x",
            "float z",
            "x:float[?]",
            "e = Concat<axis=0>(s, s)",
            3,
            "z = ReduceSum<keepdims=0>(y)",
        ),
        B,
    ),
    "as large as a slice that the data decide": Sized(
        loop(
            "float[9] x, float[1] start, int64[1] a",
            "float[K] y",
            "start:float[?]",
            "u = Unsqueeze(i, a) r = Slice(x, a, u) q = ReduceMax<keepdims=1>(s, a) e = Add(q, r)",
            3,
        ),
        {},
        {"start": np.zeros(1, np.float32)} | A,
    ),
    "an inner loop makes it grow": Sized(
        loop(
            "float[B] x, int64[1] a",
            "float[N] y",
            "x:float[?]",
            INNER,
            40,
        ),
        B,
        A,
    ),
    "a branch makes it grow": Sized(
        loop(
            "float[B] x, int64[1] a",
            "float[N] y",
            "x:float[?]",
            ODD
            + "e = "
            + branch("w", "float[?]", "p = Identity(s)", "f = Tanh(x) q = Concat<axis=0>(s, f, f)"),
            40,
        ),
        B,
        A,
    ),
    "boxes of each class in turn": Sized(
        loop(
            "float[1,B,4] x, float[1,3,B] r, int64[1] a, int64[0,3] none, float[1] t1",
            "int64[N,3] y",
            "none:int64[?,3]",
            "u = Unsqueeze(i, a) q = Gather<axis=1>(r, u) m = Constant<value_ints=[9]>() "
            "v = NonMaxSuppression(x, q, m, t1, t1) e = Concat<axis=0>(s, v)",
            3,
        ),
        {"B": (1, 20)},
        A | {"none": np.zeros((0, 3), np.int64), "t1": np.float32([0.1])},
    ),
    "half floats": Sized(
        loop("float16[B] x, int64[1] a", "float16[N] y", "x:float16[?]", GROWN), B, A
    ),
    "a loop in a loop": Sized(
        loop(
            "float[B] x, int64[1] a",
            "float[N] y",
            "x:float[?]",
            INNER,
            3,
        ),
        B | {"N": (1, 10)},
        A,
    ),
    "keys of a decoder": Sized(
        "g (float[B,1,4] x, float[4,4] w) => (float[B,N,4] y, float[B,1,4] o) { "
        "n = Constant<value=int64 {4}>() t = Constant<value=bool {1}>() y, o = Loop(n, t, x, x) <body = "
        "b (int64 i, bool c, float[B,k,4] s, float[B,1,4] q) => (bool d, float[B,l,4] e, float[B,1,4] r) "
        "{ d = Identity(c) v = MatMul(q, w) e = Concat<axis=1>(s, v) u = Transpose<perm=[0,2,1]>(e) "
        "m = MatMul(q, u) p = Softmax<axis=-1>(m) z = MatMul(p, e) r = Tanh(z) }> }",
        B,
        weights(w=(4, 4)),
    ),
    "tokens until one ends it": Sized(
        "g (int64[1,B] x, float[9,4] h, float[4,9] w, int64[1] o) => (int64[1,N] y) { "
        "n = Constant<value=int64 {6}>() t = Constant<value=bool {1}>() y = Loop(n, t, x) <body = b ("
        "int64 i, bool c, int64[1,k] s) => (bool d, int64[1,l] e) { g0 = Gather(h, s) "
        "m = ReduceMean<keepdims=0>(g0, o) v = MatMul(m, w) j = ArgMax<axis=1,keepdims=1>(v) "
        "e = Concat<axis=1>(s, j) five = Constant<value=int64[1,1] {5}>() q = Equal(j, five) "
        "r = Not(q) z = Constant<value_ints=[0,1]>() d = Squeeze(r, z) }> }",
        B,
        weights(h=(9, 4), w=(4, 9)) | {"o": np.array([1])},
    ),
    "branches of other sizes in a loop": Sized(
        loop(
            "float[B,3] x, float start, int64[1] a",
            "float y",
            "start:float",
            ODD
            + "r = "
            + branch("w", "float[?,3]", "p = Exp(x)", "q = Concat<axis=0>(x, x, x)")
            + " v = ReduceMean<keepdims=0>(r) e = Add(s, v)",
        ),
        B,
        {"start": np.float32(0)} | A,
    ),
    "what is found in a loop": Sized(
        loop(
            "float[B,3] x, float start",
            "float y",
            "start:float",
            FOUND.replace("(x)", "(x1)").replace("(x,", "(x1,").replace("z =", "x1 = Relu(x) z =")
            + "u = ReduceSum<keepdims=0>(v) e = Add(s, u)",
        ),
        B,
        {"start": np.float32(0)},
    ),
    "what is found in a loop, appended": Sized(
        loop(
            "float[B,3] x, float[1] start",
            "float[N] y",
            "start:float[?]",
            "x1 = Relu(x) z = NonZero(x1) r = Transpose(z) v = GatherND(x1, r) e = Concat<axis=0>(s, v)",
            3,
        ),
        B | {"N": (1, 40)},
        {"start": np.zeros(1, np.float32)},
    ),
    "what is found in a branch": Sized(
        "g (bool c, float[B,3] x) => (float[N] y) { x1 = Relu(x) y = "
        + branch(
            "c",
            "float[?]",
            "z = NonZero(x1) r = Transpose(z) p = GatherND(x1, r)",
            "q = Constant<value=float[2] {1,2}>()",
        )
        + " }",
        B,
    ),
    "a branch in a branch": Sized(
        "g (bool c, bool c2, float[B,3] x) => (float[N,3] y, float s) { y = "
        + branch(
            "c",
            "float[?,3]",
            "p = "
            + branch("c2", "float[?,3]", "p = Exp(x)", "q = Concat<axis=0>(x, x)")
            .replace(" p)", " p2)")
            .replace("{ p =", "{ p2 =")
            .replace(" q)", " q2)")
            .replace("{ q =", "{ q2 ="),
            "q = Constant<value=float[1,3] {1,2,3}>()",
        )
        + " s = ReduceSum<keepdims=0>(y) }",
        B,
    ),
}


@pytest.fixture(scope="module")
def library() -> SizedLibrary:
    return SizedLibrary(MODELS)


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnx_runtime(library: SizedLibrary, name: str) -> None:
    for seed in range(3):
        for sizes in MODELS[name].trials(1):
            library.check(name, sizes, seed)


def test_a_state_that_outgrows_its_bounds_ends_the_run(library: SizedLibrary) -> None:
    name, x = "rounds told by an input, bounded by the result", np.ones((4, 2), np.float32)
    assert library.run(name, np.array(5), x)[0].shape == (9, 2)
    for rounds in (6, 2**40):
        with pytest.raises(UsageError, match="E670"):
            library.run(name, np.array(rounds), x)


def test_a_state_without_a_bound_is_refused_with_what_to_do() -> None:
    graph = loop(
        "float[B] x, int64 n",
        "float z",
        "x:float[?]",
        "e = Concat<axis=0>(s, s)",
        None,
        "z = ReduceSum<keepdims=0>(y)",
    )
    with pytest.raises(
        ErrorList, match=r"E411 the size .* of 'y' [\s\S]*add an output that has it"
    ):
        Sized(graph, B).compile()


def test_rows_of_several_sizes_are_refused() -> None:
    """They do not stack to a tensor: each iteration returns a longer row than the one before."""
    graph = (
        "g (float[B] x) => (float[M,R] y) { n = Constant<value=int64 {3}>() t = Constant<value=bool {1}>() "
        "o, y = Loop(n, t, x) <body = b (int64 i, bool c, float[k] s) => (bool d, float[l] e, float[z] q) "
        "{ d = Identity(c) e = Concat<axis=0>(s, x) q = Neg(e) }> }"
    )
    with pytest.raises(ErrorList, match="E411"):
        Sized(graph, B).compile()
