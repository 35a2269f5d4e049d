"""Transposes move across operators with axes."""

from __future__ import annotations

import pytest
from rewrites import check_operators, check_rewrite, check_same_numbers, check_unchanged, run_pass

from smelt.ir import text
from smelt.ir.opset import REDUCTIONS
from smelt.passes.layout.reduce_transposes import reduce_transposes

TO, BACK = "Transpose<perm=[0,3,1,2]>", "Transpose<perm=[0,2,3,1]>"
LEFT = {
    "Pad": (
        "p = Constant<value_ints=[0,1,2,0,0,0,3,4]>() t = {TO}(x) a = Pad(t, p) y = {BACK}(a)",
        "p = Constant<value_ints=[0,2,0,1,0,3,4,0]>() y = Pad(x, p)",
    ),
    "Pad with a value": (
        "p = Constant<value_ints=[0,0,1,0,0,0,0,1]>() v = Constant<value_float=2.0>() "
        "t = {TO}(x) a = Pad(t, p, v) y = {BACK}(a)",
        "p = Constant<value_ints=[0,1,0,0,0,0,1,0]>() v = Constant<value_float=2.0>() y = Pad(x, p, v)",
    ),
    "Pad of some axes by reflection": (
        "p = Constant<value_ints=[1,2,3,0]>() i = Constant<value_ints=[2,-1]>() "
        't = {TO}(x) a = Pad<mode="reflect">(t, p, , i) y = {BACK}(a)',
        'p = Constant<value_ints=[1,2,3,0]>() i = Constant<value_ints=[1,2]>() y = Pad<mode="reflect">(x, p, , i)',
    ),
    "Slice": (
        "s = Constant<value_ints=[1,0]>() e = Constant<value_ints=[3,-1]>() i = Constant<value_ints=[1,-2]>() "
        "t = {TO}(x) a = Slice(t, s, e, i) y = {BACK}(a)",
        "s = Constant<value_ints=[1,0]>() e = Constant<value_ints=[3,-1]>() i = Constant<value_ints=[3,1]>() "
        "y = Slice(x, s, e, i)",
    ),
    "Slice of the first axes, with steps": (
        "s = Constant<value_ints=[0,2]>() e = Constant<value_ints=[9,-9]>() k = Constant<value_ints=[1,-1]>() "
        "t = {TO}(x) a = Slice(t, s, e, , k) y = {BACK}(a)",
        "s = Constant<value_ints=[0,2]>() e = Constant<value_ints=[9,-9]>() k = Constant<value_ints=[1,-1]>() "
        "i = Constant<value_ints=[0,3]>() y = Slice(x, s, e, i, k)",
    ),
    "Slice by int32": (
        "s = Constant<value = int32[1] {1}>() e = Constant<value = int32[1] {3}>() i = Constant<value = int32[1] {1}>() "
        "t = {TO}(x) a = Slice(t, s, e, i) y = {BACK}(a)",
        "s = Constant<value = int32[1] {1}>() e = Constant<value = int32[1] {3}>() i = Constant<value = int32[1] {3}>() "
        "y = Slice(x, s, e, i)",
    ),
    "Split in two": (
        "t = {TO}(x) a, b = Split<axis=2,num_outputs=2>(t) c = {BACK}(a) d = {BACK}(b) y = Sub(c, d)",
        "a, b = Split<axis=1,num_outputs=2>(x) y = Sub(a, b)",
    ),
    "Split by sizes, the group goes on": (
        "n = Constant<value_ints=[1,2]>() t = {TO}(x) a, b = Split<axis=1>(t, n) m = Mul(a, b) y = {BACK}(m)",
        "n = Constant<value_ints=[1,2]>() a, b = Split<axis=3>(x, n) y = Mul(a, b)",
    ),
    "Split of which one part is read": (
        "t = {TO}(x) a, b = Split<axis=-2,num_outputs=2>(t) c = Relu(b) y = {BACK}(c)",
        "a, b = Split<axis=1,num_outputs=2>(x) y = Relu(b)",
    ),
    "Unsqueeze and Squeeze": (
        "i = Constant<value_ints=[0,-1]>() t = {TO}(x) u = Unsqueeze(t, i) r = Relu(u) s = Squeeze(r, i) y = {BACK}(s)",
        "i = Constant<value_ints=[0,5]>() u = Unsqueeze(x, i) r = Relu(u) y = Squeeze(r, i)",
    ),
    "ArgMax that keeps dims": (
        "t = {TO}(x) m = ArgMax<axis=1>(t) f = Cast<to=1>(m) y = {BACK}(f)",
        "m = ArgMax<axis=3>(x) y = Cast<to=1>(m)",
    ),
    "CastLike": ("t = {TO}(x) c = CastLike(t, z) y = {BACK}(c)", "y = CastLike(x, z)"),
}
G = "g (float[B,4,5,3] x, float z) => (float[a,b,c,d] y)"


@pytest.mark.parametrize(("before", "after"), LEFT.values(), ids=LEFT.keys())
def test_transposes_go(before: str, after: str) -> None:
    body = before.replace("{TO}", TO).replace("{BACK}", BACK)
    check_rewrite(reduce_transposes, f"{G} {{ {body} }}", f"{G} {{ {after} }}")


DROPPED = {
    "ArgMin": (
        "g (float[B,4,5] x) => (int64[B,4] y) {"
        "t = Transpose<perm=[2,0,1]>(x) y = ArgMin<axis=0,keepdims=0>(t) }"
    ),
    "ArgMax, the last of equals": (
        "g (float[B,4,5] x) => (int64[B,5] y) { t = Transpose<perm=[1,0,2]>(x) "
        "y = ArgMax<axis=0,keepdims=0,select_last_index=1>(t) }"
    ),
    "Squeeze": (
        "g (float[B,1,5] x) => (float[B,5] y) <int64[1] i = {-1}> { t = Transpose<perm=[0,2,1]>(x) y = Squeeze(t, i) }"
    ),
    "Squeeze of every 1": (
        "g (float[2,1,5] x) => (float[2,5] y) { t = Transpose<perm=[1,0,2]>(x) y = Squeeze(t) }"
    ),
    "a sum to rank 0, which the rest reads": (
        "g (float[3,5] x) => (float[3,5] y) { t = Transpose(x) m = ReduceMax<keepdims=0>(t) "
        "s = Sub(t, m) y = Transpose(s) }"
    ),
}
OPERATORS = {
    "ArgMin": ["ArgMin"],
    "ArgMax, the last of equals": ["ArgMax"],
    "Squeeze": ["Squeeze"],
    "Squeeze of every 1": ["Squeeze"],
    "a sum to rank 0, which the rest reads": ["ReduceMax", "Sub"],
}


@pytest.mark.parametrize("name", DROPPED)
def test_a_layout_that_ends_needs_no_transpose(name: str) -> None:
    check_operators(reduce_transposes, DROPPED[name], OPERATORS[name])


def test_axes_as_attributes() -> None:
    check_operators(
        reduce_transposes,
        "g (float[B,4,5] x) => (float[B,4] y) "
        "{ t = Transpose<perm=[2,0,1]>(x) y = ReduceMax<axes=[0],keepdims=0>(t) }",
        ["ReduceMax"],
        opset=13,
    )


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("opset", [13, 17, 18, 23])
@pytest.mark.parametrize("reduction", sorted(REDUCTIONS))
def test_a_reduction_without_axes_stays_without(reduction: str, opset: int, keepdims: int) -> None:
    shape = "1,1,1" if keepdims else ""
    check_rewrite(
        reduce_transposes,
        f"g (float[2,4,5] x) => (float[{shape}] y) "
        f"{{ a = Abs(x) t = Transpose<perm=[2,0,1]>(a) y = {reduction}<keepdims={keepdims}>(t) }}",
        f"g (float[2,4,5] x) => (float[{shape}] y) {{ a = Abs(x) y = {reduction}<keepdims={keepdims}>(a) }}",
        opset=opset,
    )


def test_no_axes_in_an_empty_list_or_input() -> None:
    for opset, axes, given in (
        (13, "axes: ints = [], ", ""),
        (18, "", ", e"),
    ):
        reduced = f"ReduceMax<{axes}keepdims=0>"
        empty = "e = Constant<value = int64[0] {}>() " if given else ""
        check_rewrite(
            reduce_transposes,
            f"g (float[2,4,5] x) => (float y) {{ {empty} t = Transpose<perm=[2,0,1]>(x) y = {reduced}(t{given}) }}",
            f"g (float[2,4,5] x) => (float y) {{ {empty} y = {reduced}(x{given}) }}",
            opset=opset,
        )


def test_no_axes_that_mean_nothing_is_reduced() -> None:
    check_unchanged(
        reduce_transposes,
        "g (float[2,4,5] x) => (float[5,2,4] y) "
        "{ t = Transpose<perm=[2,0,1]>(x) y = ReduceMax<noop_with_empty_axes=1>(t) }",
        opset=18,
    )


def test_a_part_that_is_an_output() -> None:
    graph = (
        "g (float[2,4,5,3] x) => (float[2,2,5,3] y, float[2,3,2,5] a) { "
        f"t = {TO}(x) a, b = Split<axis=2,num_outputs=2>(t) c = Relu(b) y = {BACK}(c) }}"
    )
    source, model = text.parse(graph), text.parse(graph)
    run_pass(reduce_transposes, model)
    assert sum(node.op_type == "Transpose" for node in model.graph) == 1
    check_same_numbers(source, model, reduce_transposes.exactness)


KEPT = {
    "pads that are computed": (
        f"g (float[2,4,5,3] x, int64[8] p) => (float[a,b,c,d] y) {{ t = {TO}(x) a = Pad(t, p) y = {BACK}(a) }}"
    ),
    "axes that are computed": (
        "g (float[2,4,5,3] x, int64[1] s, int64[1] e, int64[1] i) => (float[a,b,c,d] y) "
        f"{{ t = {TO}(x) a = Slice(t, s, e, i) y = {BACK}(a) }}"
    ),
    "starts of unknown number": (
        "g (float[2,4,5,3] x, int64[n] s, int64[n] e) => (float[a,b,c,d] y) "
        f"{{ t = {TO}(x) a = Slice(t, s, e) y = {BACK}(a) }}"
    ),
    "Squeeze of whatever is 1": (
        "g (float[B,4,5] x) => (float y) { t = Transpose<perm=[1,0,2]>(x) s = Squeeze(t) y = ReduceMax<keepdims=0>(s) }"
    ),
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(reduce_transposes, graph)
