"""Tensors interleaved along an axis become ConcatInterleave."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt import optimize
from smelt.ir import text
from smelt.operators.concat_interleave import OPERATOR
from smelt.passes.tensors.detect_concat_interleave import detect_concat_interleave


def shuffled(
    inputs: str,
    split: str,
    end: str,
    y: str,
    *,
    axis: int = 1,
    perm: str = "[0,2,1,3,4]",
    more: str = "",
    rest: str = "",
) -> str:
    """Return text of Concat, Reshape, Transpose, Reshape."""
    names = ", ".join(part.split()[-1] for part in inputs.split(", "))
    return (
        f"g ({inputs}) => (float{y} y{more}) {{ m = Constant<value_ints={split}>() "
        f"e = Constant<value_ints={end}>() c = Concat<axis={axis}>({names}) r = Reshape(c, m) "
        f"t = Transpose<perm={perm}>(r) y = Reshape(t, e) {rest} }}"
    )


def turns(inputs: str, y: str, axis: int = 1) -> str:
    names = ", ".join(part.split()[-1] for part in inputs.split(", "))
    return f"g ({inputs}) => (float{y} y) {{ y = smelt.ConcatInterleave<axis={axis}>({names}) }}"


TWO = "float[N,3,4,5] a, float[N,3,4,5] b"
THREE = "float[2,S] u, float[2,S] v, float[2,S] w"
FOUND = {
    "channels": (
        shuffled(TWO, "[0,2,3,4,5]", "[0,6,4,5]", "[N,6,4,5]"),
        turns(TWO, "[N,6,4,5]"),
    ),
    "counted from the end": (
        shuffled(TWO, "[-1,2,3,4,5]", "[0,-1,4,5]", "[N,6,4,5]", axis=-3),
        turns(TWO, "[N,6,4,5]"),
    ),
    "the last axis": (
        shuffled(THREE, "[2,3,-1]", "[2,-1]", "[2,M]", perm="[0,2,1]"),
        turns(THREE, "[2,M]"),
    ),
    "the first axis, of one value twice": (
        shuffled(
            "float[3,2] a, float[3,2] a", "[2,3,2]", "[6,2]", "[6,2]", axis=0, perm="[1,0,2]"
        ).replace("float[3,2] a, ", "", 1),
        "g (float[3,2] a) => (float[6,2] y) { y = smelt.ConcatInterleave<axis=0>(a, a) }",
    ),
    "a stack": (
        "g (float[N,3,4] a, float[N,3,4] b) => (float[N,6,4] y) { k = Constant<value_ints=[2]>() "
        "e = Constant<value_ints=[0,6,4]>() u = Unsqueeze(a, k) v = Unsqueeze(b, k) "
        "s = Concat<axis=2>(u, v) y = Reshape(s, e) }",
        turns("float[N,3,4] a, float[N,3,4] b", "[N,6,4]"),
    ),
    "a stack behind the last axis": (
        "g (float[N,3] a, float[N,3] b) => (float[N,6] y) { k = Constant<value_ints=[-1]>() "
        "u = Unsqueeze(a, k) v = Unsqueeze(b, k) s = Concat<axis=-1>(u, v) y = Flatten(s) }",
        turns("float[N,3] a, float[N,3] b", "[N,6]"),
    ),
}


@pytest.mark.parametrize(("before", "after"), FOUND.values(), ids=FOUND.keys())
def test_becomes_an_interleaved_concat(before: str, after: str) -> None:
    check_rewrite(detect_concat_interleave, before, after)


CHANNELS = FOUND["channels"][0]
KEPT = {
    "an inner result is an output": shuffled(
        TWO, "[0,2,3,4,5]", "[0,6,4,5]", "[N,6,4,5]", more=", float[N,6,4,5] c"
    ),
    "an inner result has another reader": shuffled(
        TWO,
        "[0,2,3,4,5]",
        "[0,6,4,5]",
        "[N,6,4,5]",
        more=", float[N,3,2,4,5] z",
        rest="z = Neg(t)",
    ),
    "other groups than the values": shuffled(TWO, "[0,3,2,4,5]", "[0,6,4,5]", "[N,6,4,5]"),
    "values of two sizes": shuffled(
        "float[N,2,4] a, float[N,4,4] b", "[0,2,3,4]", "[0,6,4]", "[N,6,4]", perm="[0,2,1,3]"
    ),
    "another permutation": shuffled(
        TWO, "[0,2,3,4,5]", "[0,6,5,4]", "[N,6,5,4]", perm="[0,2,1,4,3]"
    ),
    "another last shape": shuffled(TWO, "[0,2,3,4,5]", "[0,3,8,5]", "[N,3,8,5]"),
    "another axis of the Concat": shuffled(
        "float[3,6,2] a, float[3,6,2] b",
        "[6,2,3,2]",
        "[6,6,2]",
        "[6,6,2]",
        axis=0,
        perm="[0,2,1,3]",
    ),
    "groups of one tensor": "g (float[N,6,4] x) => (float[N,6,4] y) { m = Constant<value_ints=[0,2,3,4]>() "
    "e = Constant<value_ints=[0,6,4]>() r = Reshape(x, m) t = Transpose<perm=[0,2,1,3]>(r) "
    "y = Reshape(t, e) }",
    "merged to the right": "g (float[N,3,4] a, float[N,3,4] b) => (float[N,3,8] y) { "
    "k = Constant<value_ints=[2]>() e = Constant<value_ints=[0,3,8]>() u = Unsqueeze(a, k) "
    "v = Unsqueeze(b, k) s = Concat<axis=2>(u, v) y = Reshape(s, e) }",
    "sizes that are not known to be equal": shuffled(
        "float[2,S] a, float[2,T] b", "[2,2,-1]", "[2,-1]", "[2,M]", perm="[0,2,1]"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(detect_concat_interleave, graph)


def test_only_for_targets_that_have_the_operator() -> None:
    model = text.parse(CHANNELS)
    other = frozenset({("smelt", "Cholesky")})
    assert run_pass(detect_concat_interleave, model, other).rewrites == 0
    source, name = text.parse(CHANNELS), "detect-concat-interleave"
    assert [node.op_type for node in optimize(source, pipeline=name).graph][-1] == "Reshape"
    done = optimize(source, pipeline=name, operators=frozenset({OPERATOR.key}))
    assert [node.op_type for node in done.graph][-1] == "ConcatInterleave"
    check_same_numbers(source, done, detect_concat_interleave.exactness)
