"""Rotary embeddings written as products of complex numbers, whose results are stacked."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.attention.fuse_rotary_embedding import fuse_rotary_embedding

STEPS = (
    "int64[1] o = {0}, int64[1] i = {1}, int64[1] t = {2}, int64[1] e = {9}, int64[1] a = {3}, "
    "int64[1] m = {-1}, int64[4] whole = {0,0,3,6}, int64[1] h3 = {3}"
)
EVERY_SECOND = "p = Slice(x, o, e, a, t) q = Slice(x, i, e, a, t) "
PRODUCTS = (
    "pc = Mul(p, cos) qs = Mul(sin, q) l = Sub(pc, qs) ps = Mul(p, sin) qc = Mul(cos, q) "
    "r = Add(ps, qc) "
)
STACKED = "u = Unsqueeze(l, m) v = Unsqueeze(r, m) w = Concat<axis=-1>(u, v) y = Reshape(w, whole)"
ANGLES = "float[2,1,3,3] cos, float[2,1,3,3] sin"
AFTER = (
    f"g (float[2,5,3,6] x, {ANGLES}) => (float[2,5,3,6] y) <int64[1] h = {{1}}> "
    "{ c = Squeeze(cos, h) s = Squeeze(sin, h) y = RotaryEmbedding<interleaved=1>(x, c, s) }"
)


def graph(body: str, x: str = "2,5,3,6", angles: str = ANGLES, y: str = "2,5,3,6") -> str:
    return f"g (float[{x}] x, {angles}) => (float[{y}] y) <{STEPS}> {{ {body} }}"


def test_every_second_number() -> None:
    check_rewrite(fuse_rotary_embedding, graph(EVERY_SECOND + PRODUCTS + STACKED), AFTER)


APART = "int64[5] by_two = {0,0,0,3,2}, int64[1] four = {4}, int64[2] one = {1,1}"
COMPLEX = "float[2,1,3,3,1] cos, float[2,1,3,3,1] sin"
OF_A_PAIR = {
    "split and squeezed": (
        "d, f = Split<axis=4>(z, one) p = Squeeze(d, m) q = Squeeze(f, m) ",
        STACKED,
        ANGLES,
    ),
    "cut, and kept apart": (
        "p = Slice(z, o, i, four) q = Slice(z, i, t, four) ",
        "w = Concat<axis=4>(l, r) y = Reshape(w, whole)",
        COMPLEX,
    ),
}


@pytest.mark.parametrize(("cuts", "ends", "angles"), OF_A_PAIR.values(), ids=OF_A_PAIR.keys())
def test_a_last_dim_of_two(cuts: str, ends: str, angles: str) -> None:
    source = f"g (float[2,5,3,6] x, {angles}) => (float[2,5,3,6] y) <{STEPS}, {APART}>"
    one = "c0 = Squeeze(cos, m) s0 = Squeeze(sin, m)" if angles is COMPLEX else ""
    names = "c0, s0" if one else "cos, sin"
    first, second = names.split(", ")
    check_rewrite(
        fuse_rotary_embedding,
        f"{source} {{ z = Reshape(x, by_two) {cuts + PRODUCTS + ends} }}",
        f"g (float[2,5,3,6] x, {angles}) => (float[2,5,3,6] y) <{STEPS}, {APART}, "
        f"int64[4] again = {{0,0,0,6}}> {{ z = Reshape(x, by_two) xx = Reshape(z, again) {one} "
        f"c = Squeeze({first}, i) s = Squeeze({second}, i) "
        "y = RotaryEmbedding<interleaved=1>(xx, c, s) }",
    )


def test_heads_that_are_merged_at_once() -> None:
    body = EVERY_SECOND + PRODUCTS + STACKED.replace("whole)", "rows)")
    source = graph(body, y="2,5,18").replace(STEPS, f"{STEPS}, int64[3] rows = {{0,0,-1}}")
    check_rewrite(
        fuse_rotary_embedding,
        source,
        f"g (float[2,5,3,6] x, {ANGLES}) => (float[2,5,18] y) "
        "<int64[1] h = {1}, int64[3] rows = {0,0,-1}> { c = Squeeze(cos, h) s = Squeeze(sin, h) "
        "r = RotaryEmbedding<interleaved=1>(x, c, s) y = Reshape(r, rows) }",
    )


ALONE = "d, f = Split<axis=4>(z, one) p = Squeeze(d, m) q = Squeeze(f, m) "
KEPT = {
    "halves, stacked as neighbours": graph(
        "p = Slice(x, o, h3, a) q = Slice(x, h3, e, a) " + PRODUCTS + STACKED
    ),
    "the second first": graph(
        EVERY_SECOND.replace("p =", "k =").replace("q =", "p =").replace("k =", "q =")
        + PRODUCTS
        + STACKED
    ),
    "stacked the other way round": graph(
        EVERY_SECOND + PRODUCTS + STACKED.replace("(u, v)", "(v, u)")
    ),
    "turned back": graph(
        EVERY_SECOND + PRODUCTS.replace("Sub", "Add", 1).replace("Add(ps", "Sub(ps") + STACKED
    ),
    "another angle for the second": graph(
        EVERY_SECOND + PRODUCTS.replace("Mul(p, sin)", "Mul(p, other)") + STACKED,
        angles=f"{ANGLES}, float[2,1,3,3] other",
    ),
    "stacked along another axis": graph(
        EVERY_SECOND
        + PRODUCTS
        + "u = Unsqueeze(l, a) v = Unsqueeze(r, a) w = Concat<axis=3>(u, v) y = Reshape(w, whole)"
    ),
    "a dim that another size merges, said by a 0": graph(
        EVERY_SECOND + PRODUCTS + STACKED.replace("whole)", "pairs)"), y="2,5,3,3,2"
    ).replace(STEPS, f"{STEPS}, int64[5] pairs = {{0,0,0,0,2}}"),
    "angles of each head": graph(
        EVERY_SECOND + PRODUCTS + STACKED, angles="float[5,3,3] cos, float[5,3,3] sin"
    ),
    "angles that add batches": graph(EVERY_SECOND + PRODUCTS + STACKED, x="1,5,3,6", angles=ANGLES),
    "one number on its own": graph(EVERY_SECOND + PRODUCTS + STACKED).replace(
        "(float[2,5,3,6] y)", "(float[2,5,3,6] y, float[2,5,3,3] l)"
    ),
    "doubles": graph(EVERY_SECOND + PRODUCTS + STACKED).replace("float[", "double["),
}


@pytest.mark.parametrize("source", KEPT.values(), ids=KEPT.keys())
def test_keeps(source: str) -> None:
    check_unchanged(fuse_rotary_embedding, source)


ROWS = "int64[1] i = {1}, int64[1] e = {9}, int64[1] b = {2}, int64[2] c = {2,3}, int64[2] steps = {1,2}"
BEHIND = (
    "x = Slice(w, i, e, b) p = Slice(w, c0, ends, c, steps) q = Slice(w, c1, ends1, c, steps) "
    "n = Neg(q) nn = Unsqueeze(n, m) pp = Unsqueeze(p, m) st = Concat<axis=-1>(nn, pp) "
    "t = Reshape(st, whole) l = Mul(x, cos) r = Mul(t, sin) y = Add(l, r)"
)
CONSTANTS = (
    f"{ROWS}, int64[1] m = {{-1}}, int64[4] whole = {{0,0,0,4}}, int64[2] c0 = {{1,0}}, "
    "int64[2] c1 = {1,1}, int64[2] ends = {9223372036854775807,4}, int64[2] ends1 = {4,4}, "
    "float[3,4] cos = {1,1,0.5,0.5,0,0,0.2,0.2,0.3,0.3,0.4,0.4}, "
    "float[3,4] sin = {0,0,0.5,0.5,1,1,0.8,0.8,0.7,0.7,0.9,0.9}"
)


def test_rows_behind_a_prefix() -> None:
    """EVA-02 does not rotate the class token; by then, nested slices are merged."""
    interface = "g (float[N,2,4,4] w) => (float[N,2,3,4] y)"
    source = f"{interface} <{CONSTANTS}> {{ {BEHIND} }}"
    wave = "float[3,2] co = {1,0.5,0,0.2,0.3,0.4}, float[3,2] si = {0,0.5,1,0.8,0.7,0.9}"
    check_rewrite(
        fuse_rotary_embedding,
        source,
        f"{interface} <{ROWS}, {wave}, int64[2] halves = {{-1,2}}, int64[3] line = {{0,1,2}}, "
        "int64[1] three = {3}> { x = Slice(w, i, e, b) d = Shape<start=0,end=1>(w) "
        "s = Concat<axis=0>(d, three) at = Expand(line, s) l = Reshape(co, halves) "
        "r = Reshape(si, halves) y = RotaryEmbedding<interleaved=1>(x, l, r, at) }",
    )
    others = source.replace("c1 = {1,1}", "c1 = {0,1}").replace("ends1 = {4,4}", "ends1 = {3,4}")
    check_unchanged(fuse_rotary_embedding, others)
