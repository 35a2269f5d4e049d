"""Keys and values that are copied for groups of queries, as PyTorch and JAX write them."""

from __future__ import annotations

import onnx_ir as ir
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.attention.fuse_attention import fuse_attention

GROUPED = (
    "g (float[B,6,S,4] q, float[B,2,S,4] x, float[B,2,S,5] z) => (float[B,6,S,5] y) "
    "<int64[1] at = {2}, int64[5] c = {1,1,3,1,1}, int64[4] m = {0,6,-1,4}, "
    "int64[4] n = {0,6,-1,5}> { xu = Unsqueeze(x, at) xe = Expand(xu, c) k = Reshape(xe, m) "
    "zu = Unsqueeze(z, at) ze = Expand(zu, c) v = Reshape(ze, n) y = Attention<scale=0.5>(q, k, v) }"
)


def test_keys_and_values_are_shared() -> None:
    check_rewrite(
        fuse_attention,
        GROUPED,
        "g (float[B,6,S,4] q, float[B,2,S,4] x, float[B,2,S,5] z) => (float[B,6,S,5] y) "
        "<int64[1] at = {2}> { xu = Unsqueeze(x, at) k = Squeeze(xu, at) zu = Unsqueeze(z, at) "
        "v = Squeeze(zu, at) y = Attention<scale=0.5>(q, k, v) }",
    )


ONE_GROUP = (
    "g (float[B,6,S,4] q, float[B,S,4] x, float[B,S,5] z) => (float[B,6,S,5] y) "
    "<int64[2] a = {1, 2}, int64[2] p = {2, 3}, int64[1] g = {1}, int64[1] h = {3}, "
    "int64[5] c = {1,1,6,1,1}> "
    "{ xu = Unsqueeze(x, p) xe = Expand(xu, c) xs = Squeeze(xe, h) k = Transpose<perm=[0,2,1,3]>(xs) "
    "zu = Unsqueeze(z, a) ze = Expand(zu, c) v = Squeeze(ze, g) y = Attention<scale=0.5>(q, k, v) }"
)


def test_one_group_is_shared_by_all_heads() -> None:
    """With one group, the Reshape is a Squeeze, and either dim of 1 may be the copied one."""
    source = text.parse(ONE_GROUP, 23)
    model = optimize(source)
    assert "Expand" not in [node.op_type for node in model.graph]
    check_same_numbers(source, model, fuse_attention.exactness)


ROWS = (
    "g (float[B,S,24] q0, float[B,S,8] x0, float[B,S,8] z0) => (float[B,S,24] y) "
    "<int64[4] h = {0,0,6,4}, int64[4] g = {0,0,2,4}, int64[1] at = {2}, "
    "int64[5] c = {1,1,3,1,1}, int64[4] m = {0,6,-1,4}, int64[3] r = {0,0,24}> "
    "{ q1 = Reshape(q0, h) q = Transpose<perm=[0,2,1,3]>(q1) "
    "x1 = Reshape(x0, g) x = Transpose<perm=[0,2,1,3]>(x1) "
    "z1 = Reshape(z0, g) z = Transpose<perm=[0,2,1,3]>(z1) "
    "xu = Unsqueeze(x, at) xe = Expand(xu, c) k = Reshape(xe, m) "
    "zu = Unsqueeze(z, at) ze = Expand(zu, c) v = Reshape(ze, m) "
    "a = Attention<is_causal=1>(q, k, v) t = Transpose<perm=[0,2,1,3]>(a) y = Reshape(t, r) }"
)
BEFORE_HEADS = (
    ROWS.replace("x = Transpose<perm=[0,2,1,3]>(x1)", "")
    .replace("z = Transpose<perm=[0,2,1,3]>(z1)", "")
    .replace("at = {2}", "at = {3}")
    .replace("c = {1,1,3,1,1}", "c = {1,1,1,3,1}")
    .replace("m = {0,6,-1,4}", "m = {0,-1,6,4}")
    .replace("Unsqueeze(x, at)", "Unsqueeze(x1, at)")
    .replace("Unsqueeze(z, at)", "Unsqueeze(z1, at)")
    .replace("k = Reshape(xe, m)", "kt = Reshape(xe, m) k = Transpose<perm=[0,2,1,3]>(kt)")
    .replace("v = Reshape(ze, m)", "vt = Reshape(ze, m) v = Transpose<perm=[0,2,1,3]>(vt)")
)


@pytest.mark.parametrize("source", [ROWS, BEFORE_HEADS], ids=["heads first", "positions first"])
def test_rows_of_grouped_heads_go_in_as_they_are(source: str) -> None:
    model = optimize(text.parse(source, 23))
    (node,) = model.graph
    heads = [node.attributes[name].as_int() for name in ("q_num_heads", "kv_num_heads")]
    assert (node.op_type, heads) == ("Attention", [6, 2])
    check_same_numbers(text.parse(source, 23), model, fuse_attention.exactness, modes=("normal",))


KEPT = {
    "all heads repeated": GROUPED.replace("at = {2}", "at = {1}").replace(
        "c = {1,1,3,1,1}", "c = {1,3,1,1,1}"
    ),
    "keys alone": GROUPED.replace("zu = Unsqueeze(z, at) ze = Expand(zu, c) v = Reshape(ze, n)", "")
    .replace("float[B,2,S,5] z", "float[B,6,S,5] v")
    .replace(", int64[4] n = {0,6,-1,5}", ""),
    "positions copied": GROUPED.replace("at = {2}", "at = {3}")
    .replace("c = {1,1,3,1,1}", "c = {1,1,1,3,1}")
    .replace("q, float[B,2,S,4] x, float[B,2,S,5] z", "q, float[B,6,2,4] x, float[B,6,2,5] z"),
}  # fmt: skip


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(fuse_attention, source)


def test_copies_that_something_else_reads_stay() -> None:
    before = GROUPED.replace("(float[B,6,S,5] y)", "(float[B,6,S,5] y, float[B,6,S,4] k)")
    check_unchanged(fuse_attention, before)


def test_both_runtimes_share_heads_in_order() -> None:
    model = optimize(text.parse(ROWS, 23))
    assert isinstance(model, ir.Model)
    check_same_numbers(text.parse(ROWS, 23), model, fuse_attention.exactness)


ONE_HEAD = (
    "g (float[B,{q},S,4] q, float[{b},{k},T,4] k, float[{b},{v},T,5] v) => (float[B,6,S,5] y) "
    "<float c = {{0.5}}> {{ t = Transpose<perm=[0,1,3,2]>(k) s = MatMul(q, t) a = Mul(s, c) "
    "p = Softmax<axis=-1>(a) y = MatMul(p, v) }}"
)
HEADS = {"q": 6, "k": 1, "v": 1, "b": "B"}


def test_one_head_of_keys_and_values_serves_all_queries() -> None:
    """Falcon multiplies many heads by one, which broadcasts, without an Expand."""
    source = text.parse(ONE_HEAD.format(**HEADS), 23)
    model = optimize(source)
    assert [node.op_type for node in model.graph] == ["Attention"]
    check_same_numbers(source, model, fuse_attention.exactness, modes=("normal",))
    expanded = optimize(source, pipeline="fuse-attention,expand-attention")
    assert "Attention" not in [node.op_type for node in expanded.graph]
    check_same_numbers(source, expanded, fuse_attention.exactness, modes=("normal",))


@pytest.mark.parametrize("other", [{"v": 6}, {"k": 6}, {"b": 1}, {"q": 1, "k": 6, "v": 6}])
def test_other_sizes_that_broadcast_stay(other: dict[str, object]) -> None:
    check_unchanged(fuse_attention, ONE_HEAD.format(**{**HEADS, **other}))
