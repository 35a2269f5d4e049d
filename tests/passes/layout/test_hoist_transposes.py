"""One Transpose before a Split replaces equal Transposes of all parts."""

from __future__ import annotations

import pytest
from convolutions import tensor
from rewrites import check_rewrite, check_unchanged

from smelt.passes.layout.hoist_transposes import hoist_transposes

ROWS = "float[B,S,4] q, float[B,S,4] k"
PARTS = "q = Transpose<perm=[1,0,2]>(a) k = Transpose<perm=[1,0,2]>(c)"
WEIGHTS = ", ".join(
    tensor(name, shape)
    for name, shape in (("w", (5, 8)), ("wide", (9, 8)), ("row", (8,)), ("m", (2, 5, 8)))
)


def graph(body: str, x: str = "float[S,B,8]", outputs: str = ROWS) -> str:
    return f"g ({x} x) => ({outputs}) <int64[2] z = {{4,4}}, {WEIGHTS}> {{ {body} }}"


SPLIT = "a, c = Split<axis=2>({}, z) "
HOISTED = {
    "two parts": (
        graph(SPLIT.format("x") + PARTS),
        graph("t = Transpose<perm=[1,0,2]>(x) q, k = Split<axis=2>(t, z)"),
    ),
    "parts of an equal size": (
        graph("a, c = Split<axis=2, num_outputs=2>(x) " + PARTS),
        graph("t = Transpose<perm=[1,0,2]>(x) q, k = Split<axis=2, num_outputs=2>(t)"),
    ),
    "parts of a dim that moves": (
        graph(
            "a, c = Split<axis=0>(x, z) q = Transpose<perm=[2,0,1]>(a) k = Transpose<perm=[2,0,1]>(c)",
            "float[8,B,5]",
            "float[5,4,B] q, float[5,4,B] k",
        ),
        graph(
            "t = Transpose<perm=[2,0,1]>(x) q, k = Split<axis=1>(t, z)",
            "float[8,B,5]",
            "float[5,4,B] q, float[5,4,B] k",
        ),
    ),
    "a product and its row": (
        graph("p = MatMul(x, w) s = Add(row, p) " + SPLIT.format("s") + PARTS, "float[S,B,5]"),
        graph(
            "t = Transpose<perm=[1,0,2]>(x) p = MatMul(t, w) s = Add(row, p) "
            "q, k = Split<axis=2>(s, z)",
            "float[S,B,5]",
        ),
    ),
    "a product of wider rows, which stays above": (
        graph("p = MatMul(x, wide) " + SPLIT.format("p") + PARTS, "float[S,B,9]"),
        graph(
            "p = MatMul(x, wide) t = Transpose<perm=[1,0,2]>(p) q, k = Split<axis=2>(t, z)",
            "float[S,B,9]",
        ),
    ),
    "a product of which columns become rows": (
        graph(
            "p = MatMul(x, w) a, c = Split<axis=2>(p, z) q = Transpose<perm=[0,2,1]>(a) "
            "k = Transpose<perm=[0,2,1]>(c)",
            "float[S,B,5]",
            "float[S,4,B] q, float[S,4,B] k",
        ),
        graph(
            "p = MatMul(x, w) t = Transpose<perm=[0,2,1]>(p) q, k = Split<axis=1>(t, z)",
            "float[S,B,5]",
            "float[S,4,B] q, float[S,4,B] k",
        ),
    ),
    "a matrix for each row of a batch": (
        graph(
            "p = MatMul(x, m) " + SPLIT.format("p") + PARTS,
            "float[2,B,5]",
            "float[B,2,4] q, float[B,2,4] k",
        ),
        graph(
            "p = MatMul(x, m) t = Transpose<perm=[1,0,2]>(p) q, k = Split<axis=2>(t, z)",
            "float[2,B,5]",
            "float[B,2,4] q, float[B,2,4] k",
        ),
    ),
    "a product that something else reads": (
        graph(
            "p = MatMul(x, w) e = Exp(p) " + SPLIT.format("p") + PARTS,
            "float[S,B,5]",
            ROWS + ", float[S,B,8] e",
        ),
        graph(
            "p = MatMul(x, w) e = Exp(p) t = Transpose<perm=[1,0,2]>(p) q, k = Split<axis=2>(t, z)",
            "float[S,B,5]",
            ROWS + ", float[S,B,8] e",
        ),
    ),
}


@pytest.mark.parametrize(("source", "expected"), HOISTED.values(), ids=HOISTED)
def test_hoists(source: str, expected: str) -> None:
    check_rewrite(hoist_transposes, source, expected)


KEPT = {
    "two permutations": graph(
        SPLIT.format("x") + "q = Transpose<perm=[1,0,2]>(a) k = Transpose<perm=[0,2,1]>(c)",
        outputs="float[B,S,4] q, float[S,4,B] k",
    ),
    "a part that is an output": graph(SPLIT.format("x") + PARTS, outputs=ROWS + ", float[S,B,4] a"),
    "a part that something else reads": graph(
        SPLIT.format("x") + PARTS + " n = Neg(c)", outputs=ROWS + ", float[S,B,4] n"
    ),
    "a part that nobody reads": graph(
        SPLIT.format("x") + "q = Transpose<perm=[1,0,2]>(a)", outputs="float[B,S,4] q"
    ),
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(hoist_transposes, source)


def test_a_reader_in_a_branch_keeps_the_parts() -> None:
    check_unchanged(
        hoist_transposes,
        "g (float[3,8] x, bool c) => (float[4,3] q, float[4,3] k) <int64[2] z = {4,4}> "
        "{ a, d = Split<axis=1>(x, z) q = Transpose(a) k = If(c) <"
        "then_branch = t () => (float[4,3] u) { u = Transpose(d) }, "
        "else_branch = e () => (float[4,3] v) { v = Transpose(d) }> }",
    )
