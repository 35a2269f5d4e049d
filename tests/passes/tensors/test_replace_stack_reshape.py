"""A stack whose new axis is merged with the next becomes a Concat."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.tensors.replace_stack_reshape import replace_stack_reshape


def stack(axis: int, shape: str, names: str = "ab", written: int | None = None) -> str:
    """Return text that stacks the values ``names`` along ``axis`` and reshapes to ``shape``."""
    written = axis if written is None else written
    lines = [f"k = Constant<value_ints=[{written}]>() d = Constant<value_ints={shape}>()"]
    lines += [f"u{v} = Unsqueeze({v}, k)" for v in names]
    joined = ", ".join(f"u{v}" for v in names)
    return "\n".join([*lines, f"s = Concat<axis={written}>({joined})", "y = Reshape(s, d)"])


TWO = "float[1,5,3,4] a, float[1,5,3,4] b"
SYMBOLIC = "float[N,5,S,4] a, float[N,5,S,4] b"
MERGED = {
    "channels": (TWO, stack(1, "[1,10,3,4]"), "[1,10,3,4]", 1),
    "the batch": (TWO, stack(0, "[2,5,3,4]"), "[2,5,3,4]", 0),
    "counted from the end": (TWO, stack(3, "[1,5,3,8]", written=-2), "[1,5,3,8]", 3),
    "a symbolic axis": (SYMBOLIC, stack(2, "[0,5,-1,4]"), "[N,5,M,4]", 2),
    "three values": (
        "float[2,3] a, float[2,3] b, float[2,3] c",
        stack(1, "[2,-1]", "abc"),
        "[2,9]",
        1,
    ),
    "vectors": ("float[3] a, float[3] b", stack(0, "[6]"), "[6]", 0),
    "equal dims, told apart by place": (
        "float[4,4,4] a, float[4,4,4] b",
        stack(1, "[4,8,4]"),
        "[4,8,4]",
        1,
    ),
    "nothing in them": ("float[0,4] a, float[0,4] b", stack(1, "[0,8]"), "[0,8]", 1),
}


@pytest.mark.parametrize(("inputs", "body", "shape", "axis"), MERGED.values(), ids=MERGED.keys())
def test_becomes_a_concat(inputs: str, body: str, shape: str, axis: int) -> None:
    names = ", ".join(part.split()[-1] for part in inputs.split(", "))
    check_rewrite(
        replace_stack_reshape,
        f"g ({inputs}) => (float{shape} y) {{ {body} }}",
        f"g ({inputs}) => (float{shape} y) {{ y = Concat<axis={axis}>({names}) }}",
    )


def test_a_reshape_that_only_inserts_an_axis_stacks_too() -> None:
    check_rewrite(
        replace_stack_reshape,
        "g (float[N,3] a, float[N,3] b) => (float[N,6] y) { "
        "i = Constant<value_ints=[0,1,3]>() p = Reshape(a, i) q = Reshape(b, i) "
        "s = Concat<axis=1>(p, q) d = Constant<value_ints=[0,6]>() y = Reshape(s, d) }",
        "g (float[N,3] a, float[N,3] b) => (float[N,6] y) { y = Concat<axis=1>(a, b) }",
    )


def test_flatten_merges_too() -> None:
    check_rewrite(
        replace_stack_reshape,
        "g (float[N,3] a, float[N,3] b) => (float[N,6] y) { k = Constant<value_ints=[1]>() "
        "p = Unsqueeze(a, k) q = Unsqueeze(b, k) s = Concat<axis=1>(p, q) y = Flatten(s) }",
        "g (float[N,3] a, float[N,3] b) => (float[N,6] y) { y = Concat<axis=1>(a, b) }",
    )


def test_one_value_twice_and_a_value_that_is_an_output() -> None:
    check_rewrite(
        replace_stack_reshape,
        "g (float[2,3] x) => (float[2,6] y, float[2,3] a) { a = Neg(x) "
        + stack(1, "[2,6]", "aa").replace("ua = Unsqueeze(a, k)\n", "", 1)
        + " }",
        "g (float[2,3] x) => (float[2,6] y, float[2,3] a) { a = Neg(x) y = Concat<axis=1>(a, a) }",
    )


def kept(body: str, shape: str, more: str = "", inputs: str = TWO) -> str:
    return f"g ({inputs}) => (float{shape} y{more}) {{ {body} }}"


KEPT = {
    "the first unsqueezed value is an output": kept(
        stack(1, "[1,10,3,4]"), "[1,10,3,4]", ", float[1,1,5,3,4] ua"
    ),
    "the stack is an output": kept(stack(1, "[1,10,3,4]"), "[1,10,3,4]", ", float[1,2,5,3,4] s"),
    "the stack has another reader": kept(
        stack(1, "[1,10,3,4]") + " z = Neg(s)", "[1,10,3,4]", ", float[1,2,5,3,4] z"
    ),
    "merged to the left": kept(stack(2, "[1,10,3,4]"), "[1,10,3,4]"),
    "merged to the left, with equal dims": kept(
        stack(1, "[8,4,4]"), "[8,4,4]", inputs="float[4,4,4] a, float[4,4,4] b"
    ),
    "the new axis is the last": kept(stack(4, "[1,5,3,8]"), "[1,5,3,8]"),
    "three axes in one": kept(stack(1, "[1,30,4]"), "[1,30,4]"),
    "another shape": kept(stack(1, "[1,5,6,4]"), "[1,5,6,4]"),
    "a shape that only the caller knows": "g (float[2,3] a, float[2,3] b, int64[2] d) => "
    "(float[P,Q] y) { " + stack(1, "[0]").replace("d = Constant<value_ints=[0]>()", "") + " }",
    "a join along another axis": kept(
        stack(1, "[2,5,3,4]").replace("Concat<axis=1>", "Concat<axis=0>"), "[2,5,3,4]"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(replace_stack_reshape, graph)
