"""``Attention`` joins past keys and values itself, as in the decoding steps that exporters
write."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged

import smelt
from smelt import optimize
from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.passes.attention.fuse_attention_cache import fuse_attention_cache
from smelt.passes.base import EXACT

INTERFACE = (
    "g (float[B,6,S,4] q, float[B,2,S,4] k, float[B,2,S,5] v, float[B,2,P,4] pk, "
    "float[B,2,P,5] pv{}) => (float[B,6,S,5] y, float[B,2,T,4] nk, float[B,2,T,5] nv) "
)
STEP = (
    INTERFACE.format("")
    + "{ nk = Concat<axis=2>(pk, k) nv = Concat<axis=-2>(pv, v) y = Attention<scale=0.5>(q, nk, nv) }"
)


def test_past_and_present_go_inside() -> None:
    check_rewrite(
        fuse_attention_cache,
        STEP,
        INTERFACE.format("") + "{ y, nk, nv = Attention<scale=0.5>(q, k, v, , pk, pv) }",
    )


def test_a_mask_stays() -> None:
    def sized(source: str) -> str:
        return source.replace("S", "1").replace("P", "3").replace("T,", "4,")

    check_rewrite(
        fuse_attention_cache,
        sized(STEP.replace("pv)", "pv, float[B,1,S,4] m)", 1).replace("nk, nv) }", "nk, nv, m) }")),
        sized(
            INTERFACE.format(", float[B,1,S,4] m")
            + "{ y, nk, nv = Attention<scale=0.5>(q, k, v, m, pk, pv) }"
        ),
    )


ROWS = (
    "g (float[B,S,24] q0, float[B,S,8] k0, float[B,S,10] v0, float[B,2,P,4] pk, float[B,2,P,5] pv) "
    "=> (float[B,S,30] y, float[B,2,T,4] nk, float[B,2,T,5] nv) "
    "<int64[4] h = {0,0,6,4}, int64[4] g = {0,0,2,4}, int64[4] w = {0,0,2,5}, int64[3] r = {0,0,30}> "
    "{ q1 = Reshape(q0, h) q = Transpose<perm=[0,2,1,3]>(q1) "
    "k1 = Reshape(k0, g) k = Transpose<perm=[0,2,1,3]>(k1) "
    "v1 = Reshape(v0, w) v = Transpose<perm=[0,2,1,3]>(v1) "
    "nk = Concat<axis=2>(pk, k) nv = Concat<axis=2>(pv, v) a = Attention(q, nk, nv) "
    "t = Transpose<perm=[0,2,1,3]>(a) y = Reshape(t, r) }"
)


@pytest.mark.parametrize("source", [ROWS, ROWS.replace("S,", "1,")], ids=["symbolic", "one"])
def test_a_step_is_one_operator(source: str) -> None:
    model = optimize(text.parse(source, 23))
    (node,) = model.graph
    heads = [node.attributes[name].as_int() for name in ("q_num_heads", "kv_num_heads")]
    assert (node.op_type, heads, len(node.outputs)) == ("Attention", [6, 2], 3)
    check_same_numbers(text.parse(source, 23), model, EXACT, modes=("normal",))


@pytest.mark.parametrize("target", ["c", "host"])
def test_targets_without_the_operator_take_a_step(target: str) -> None:
    sizes = {"B": 2, "P": 3}
    model = text.parse(ROWS.replace("S,", "1,"), 23)
    rng = np.random.default_rng(0)
    shapes = (2, 1, 24), (2, 1, 8), (2, 1, 10), (2, 2, 3, 4), (2, 2, 3, 5)
    inputs = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    expected = smelt.compile(model, target="onnx").load()(*inputs)
    for result, wanted in zip(
        smelt.compile(model, target=target, dims=sizes)(*inputs), expected, strict=True
    ):
        np.testing.assert_allclose(result, wanted, rtol=1e-5, atol=1e-6)


KEPT = {
    "joined keys that something else reads": STEP.replace("} ", "}").replace(
        "y = A", "z = Neg(nk) y = A").replace("nv) {", "nv, float[B,2,T,4] z) {"),
    "joined keys that are no output": STEP.replace(", float[B,2,T,4] nk", ""),
    "a causal mask": STEP.replace("scale=0.5", "is_causal=1"),
    "what is new before the past": STEP.replace("pk, k)", "pk, k, k)"),
    "keys alone": STEP.replace("nv = Concat<axis=-2>(pv, v)", "nv = Identity(v)"),
    "a past of other heads": STEP.replace("float[B,2,P,4] pk", "float[B,H,P,4] pk"),
    "a past of unknown rank": STEP.replace("float[B,2,P,4] pk", "float[] pk"),
}  # fmt: skip


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT)
def test_keeps(source: str) -> None:
    check_unchanged(fuse_attention_cache, source)


@pytest.mark.parametrize("rewrites", [1, 2, 3])
def test_stops_within_a_step_when_it_is_told_to(rewrites: int) -> None:
    """Bisection limits edits to find the wrong one."""
    source = text.parse(STEP, 23)
    model = source.clone()
    optimize_model(model, pipeline="fuse-attention-cache", rewrites=rewrites)
    check_same_numbers(source, model, EXACT, modes=("normal",))
    assert ("Concat" in [node.op_type for node in model.graph]) == (rewrites < 3)
