"""Transposes that move no elements become Reshapes."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

import smelt
from smelt.ir import text
from smelt.passes.layout.transpose_to_reshape import transpose_to_reshape

MOVED = {
    "pixels": ("[N,5,1,1]", "0,2,3,1", "[N,1,1,5]", "0,1,1,5"),
    "one channel": ("[2,1,3,4]", "0,2,3,1", "[2,3,4,1]", "2,3,4,1"),
    "one head, of unknown length": ("[2,1,S,4]", "0,2,1,3", "[2,S,1,4]", "2,-1,1,4"),
    "a row": ("[1,N]", "1,0", "[N,1]", "-1,1"),
    "two symbols, one of which stays": ("[B,1,S]", "0,2,1", "[B,S,1]", "0,-1,1"),
}


@pytest.mark.parametrize(("x", "perm", "y", "shape"), MOVED.values(), ids=MOVED.keys())
@pytest.mark.parametrize("opset", [13, 25])
def test_becomes_a_reshape(x: str, perm: str, y: str, shape: str, opset: int) -> None:
    check_rewrite(
        transpose_to_reshape,
        f"g (float{x} x) => (float{y} y) {{ y = Transpose<perm=[{perm}]>(x) }}",
        f"g (float{x} x) => (float{y} y) {{ s = Constant<value_ints=[{shape}]>() "
        "y = Reshape(x, s) }",
        opset=opset,
    )


def test_the_reverse_of_a_row() -> None:
    check_rewrite(
        transpose_to_reshape,
        "g (int8[1,4] x) => (int8[4,1] y) { y = Transpose(x) }",
        "g (int8[1,4] x) => (int8[4,1] y) { s = Constant<value_ints=[4,1]>() y = Reshape(x, s) }",
    )


KEPT = {
    "a size that is not known to be 1": ("[N,C]", "1,0", "[C,N]"),
    "others change places": ("[1,2,3]", "2,1,0", "[3,2,1]"),
    "two symbols that move": ("[1,A,B,2]", "1,2,0,3", "[A,B,1,2]"),
    "no elements": ("[1,0,3]", "1,0,2", "[0,1,3]"),
}


@pytest.mark.parametrize(("x", "perm", "y"), KEPT.values(), ids=KEPT.keys())
def test_keeps(x: str, perm: str, y: str) -> None:
    check_unchanged(
        transpose_to_reshape,
        f"g (float{x} x) => (float{y} y) {{ y = Transpose<perm=[{perm}]>(x) }}",
    )


def test_it_merges_with_the_reshape_behind_it() -> None:
    model = smelt.optimize(
        text.parse(
            "g (float[N,5,7,7] x) => (float[N,5] y) <int64[2] s = {-1,5}> "
            "{ p = GlobalAveragePool(x) t = Transpose<perm=[0,2,3,1]>(p) y = Reshape(t, s) }"
        )
    )
    assert "Transpose" not in [n.op_type for n in model.graph]
    assert len(model.graph) == 2


def test_pairs_still_cancel() -> None:
    model = smelt.optimize(
        text.parse(
            "g (float[N,4,4,1] x) => (float[N,4,4,1] y) "
            "{ t = Transpose<perm=[0,3,1,2]>(x) r = Relu(t) y = Transpose<perm=[0,2,3,1]>(r) }"
        )
    )
    assert [n.op_type for n in model.graph] == ["Relu"]
