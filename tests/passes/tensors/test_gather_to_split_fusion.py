"""A stack of parts that Gathers take one by one becomes a Split."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.tensors.gather_to_split_fusion import gather_to_split_fusion

INDICES = ", ".join(f"int64 i{k} = {{{k}}}" for k in range(3))
OUTPUTS = "float[S,B,4] p, float[S,B,4] q, float[S,B,4] r"


def graph(
    body: str,
    shape: str = "int64[4] s = {0,0,3,4}",
    x: str = "float[S,B,12]",
    outputs: str = OUTPUTS,
) -> str:
    return f"g ({x} x) => ({outputs}) <{shape}, {INDICES}, int64 last = {{-1}}> {{ {body} }}"


GATHERS = "p = Gather<axis=2>(k, i0) q = Gather<axis=2>(k, i1) r = Gather<axis=2>(k, {})"
STACK = "k = Reshape(x, s) "


def after(body: str, x: str = "float[S,B,12]", outputs: str = OUTPUTS, constants: str = "") -> str:
    return f"g ({x} x) => ({outputs}) <int64[3] z = {{4,4,4}}{constants}> {{ {body} }}"


SPLIT = "p, q, r = Split<axis=2>(x, z)"
FUSED = {
    "three parts": (graph(STACK + GATHERS.format("i2")), after(SPLIT)),
    "an index from behind": (graph(STACK + GATHERS.format("last")), after(SPLIT)),
    "a part that is read twice": (
        graph(
            STACK + "p = Gather<axis=2>(k, i0) q = Gather<axis=2>(k, i2) r = Gather<axis=2>(k, i2)"
        ),
        after("p, n, q = Split<axis=2>(x, z) r = Identity(q)"),
    ),
    "a dim in the middle": (
        graph(
            "k = Reshape(x, s) p = Gather<axis=1>(k, i0) q = Gather<axis=1>(k, i1) "
            "r = Gather<axis=1>(k, i2)",
            shape="int64[4] s = {2,3,4,5}",
            x="float[2,12,5]",
            outputs="float[2,4,5] p, float[2,4,5] q, float[2,4,5] r",
        ),
        after(
            "p, q, r = Split<axis=1>(x, z)",
            "float[2,12,5]",
            "float[2,4,5] p, float[2,4,5] q, float[2,4,5] r",
        ),
    ),
    "heads": (
        graph(
            STACK + GATHERS.format("i2"),
            shape="int64[5] s = {0,0,3,2,2}",
            outputs="float[S,B,2,2] p, float[S,B,2,2] q, float[S,B,2,2] r",
        ),
        after(
            "a, b, c = Split<axis=2>(x, z) p = Reshape(a, h) q = Reshape(b, h) r = Reshape(c, h)",
            outputs="float[S,B,2,2] p, float[S,B,2,2] q, float[S,B,2,2] r",
            constants=", int64[4] h = {0,0,2,2}",
        ),
    ),
    "integers": (
        graph(STACK + GATHERS.format("i2")).replace("float", "int8"),
        after(SPLIT).replace("float", "int8"),
    ),
}


@pytest.mark.parametrize(("source", "expected"), FUSED.values(), ids=FUSED)
def test_fuses(source: str, expected: str) -> None:
    check_rewrite(gather_to_split_fusion, source, expected)


KEPT = {
    "a stack that is an output": graph(
        STACK + GATHERS.format("i2"), outputs=OUTPUTS + ", float[S,B,3,4] k"
    ),
    "a stack that something else reads": graph(
        STACK + GATHERS.format("i2") + " n = Neg(k)", outputs=OUTPUTS + ", float[S,B,3,4] n"
    ),
    "one part": graph(
        STACK + "p = Gather<axis=2>(k, i1) q = Neg(p) r = Abs(p)",
    ),
    "an index of a vector": graph(
        "k = Reshape(x, s) v = Constant<value_ints=[0]>() p = Gather<axis=2>(k, i0) "
        "q = Gather<axis=2>(k, i1) r = Gather<axis=2>(k, v)",
        outputs="float[S,B,4] p, float[S,B,4] q, float[S,B,1,4] r",
    ),
    "another axis": graph(
        STACK + "p = Gather<axis=3>(k, i0) q = Gather<axis=3>(k, i1)",
        outputs="float[S,B,3] p, float[S,B,3] q",
    ),
    "a Reshape that mixes dims": graph(
        "k = Reshape(x, s) p = Gather<axis=2>(k, i0) q = Gather<axis=2>(k, i1)",
        shape="int64[4] s = {4,2,3,4}",
        x="float[2,4,12]",
        outputs="float[4,2,4] p, float[4,2,4] q",
    ),
    "heads before the last dim": graph(
        "k = Reshape(x, s) p = Gather<axis=1>(k, i0) q = Gather<axis=1>(k, i1)",
        shape="int64[5] s = {2,3,2,2,5}",
        x="float[2,12,5]",
        outputs="float[2,2,2,5] p, float[2,2,2,5] q",
    ),
}


def test_an_index_beyond_the_stack_fails_as_before() -> None:
    """The index is in a branch that is not taken, and is not reduced modulo the size."""
    far = "q = Gather<axis=1>(k, far) y = Add(p, q)"
    check_unchanged(
        gather_to_split_fusion,
        "g (float[2,12] x, bool c) => (float[2,4] z) <int64[3] s = {2,3,4}, int64 i0 = {0}, "
        "int64 far = {4}> { z = If(c) <then_branch = t () => (float[2,4] y) "
        f"{{ k = Reshape(x, s) p = Gather<axis=1>(k, i0) {far} }}, "
        "else_branch = e () => (float[2,4] v) { k2 = Reshape(x, s) v = Gather<axis=1>(k2, i0) }> }",
    )


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(gather_to_split_fusion, source)


def test_a_reader_in_a_branch_keeps_the_stack() -> None:
    check_unchanged(
        gather_to_split_fusion,
        f"g (float[2,12] x, bool c) => (float[2,4] p, float[2,4] q) "
        f"<int64[3] s = {{2,3,4}}, {INDICES}> "
        "{ k = Reshape(x, s) p = Gather<axis=1>(k, i0) q = If(c) <"
        "then_branch = t () => (float[2,4] u) { u = Gather<axis=1>(k, i1) }, "
        "else_branch = e () => (float[2,4] v) { v = Gather<axis=1>(k, i2) }> }",
    )
