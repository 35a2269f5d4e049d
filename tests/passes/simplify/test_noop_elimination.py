"""Operators that return their input are removed; similar ones stay."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.noop_elimination import noop_elimination

DROPPED = {
    "x + 0": "a = Add(x, zero)",
    "0 + x": "a = Add(zero, x)",
    "x - 0": "a = Sub(x, zero)",
    "x * 1": "a = Mul(x, one)",
    "1 * x": "a = Mul(one, x)",
    "x / 1": "a = Div(x, one)",
    "x ** 1": "a = Pow(x, one)",
    "a row of ones": "a = Mul(x, ones)",
    "Identity": "a = Identity(x)",
    "Cast to its own type": "a = Cast<to=1>(x)",
    "CastLike a value of its own type": "a = CastLike(x, one)",
    "two negations": "n = Neg(x) a = Neg(n)",
    "-1 * -1 * x": "n = Mul(x, minus) a = Mul(minus, n)",
    "x / -1, negated": "n = Div(x, minus) a = Neg(n)",
    "-x * -1": "n = Neg(x) a = Mul(n, minus)",
    "identity Transpose": "a = Transpose<perm=[0,1]>(x)",
    "Reshape to its own shape": "a = Reshape(x, keep)",
    "Reshape to a shape computed from its own": "s = Shape(x) a = Reshape(x, s)",
    "Expand to its own shape": "a = Expand(x, ones_i)",
    "Tile once": "a = Tile(x, ones_i)",
    "Concat of one": "a = Concat<axis=0>(x)",
    "Max of one": "a = Max(x)",
    "Pad by nothing": "a = Pad(x, zeros_i)",
    "Clip to infinity": "a = Clip(x, minus_inf, inf)",
    "Dropout at inference": "a = Dropout(x)",
    "the whole Slice": "a = Slice(x, zeros_2, ends, axes)",
    "Slice of a symbolic axis": "a = Slice(x, zeros_1, end, first)",
    "Split in one": "a = Split<num_outputs=1>(x)",
    "Flatten of a matrix": "a = Flatten(x)",
}
CONSTANTS = """<float zero = {0.0}, float one = {1.0}, float minus = {-1.0}, float[4] ones = {1,1,1,1}, int64[2] ones_i = {1,1},
    int64[2] keep = {0,4}, int64[4] zeros_i = {0,0,0,0}, float minus_inf = {-inf}, float inf = {inf},
    int64[2] zeros_2 = {0,0}, int64[2] ends = {9223372036854775807,4}, int64[2] axes = {0,1},
    int64[1] zeros_1 = {0}, int64[1] end = {9223372036854775807}, int64[1] first = {0}>"""


@pytest.mark.parametrize("body", DROPPED.values(), ids=DROPPED.keys())
def test_drops(body: str) -> None:
    before = f"g (float[N,4] x) => (float[N,4] y) {CONSTANTS} {{ {body} y = Exp(a) }}"
    check_rewrite(noop_elimination, before, "g (float[N,4] x) => (float[N,4] y) { y = Exp(x) }")


KEPT = {
    "a constant that broadcasts up": (
        "g (float[4] x) => (float[2,4] y) <float[2,1] c = {1,1}> { a = Mul(x, c) y = Exp(a) }"
    ),
    "a constant that raises the rank": (
        "g (float[4] x) => (float[1,4] y) <float[1,1] c = {0}> { a = Add(x, c) y = Exp(a) }"
    ),
    "negated once": "g (float[4] x) => (float[4] y) <float c = {-1}, float d = {1.5}> { a = Mul(x, c) y = Mul(a, d) }",
    "a divisor that is negated": "g (float[4] x) => (float[4] y) <float c = {-1}> { a = Mul(x, c) y = Div(c, a) }",
    "negated up": (
        "g (float[4] x) => (float[2,4] y) <float[2,1] c = {-1,-1}, float d = {-1}> { a = Mul(x, d) y = Mul(a, c) }"
    ),
    "nearly zero": "g (float[4] x) => (float[4] y) <float c = {1e-12}> { a = Add(x, c) y = Exp(a) }",
    "one / x": "g (float[4] x) => (float[4] y) <float c = {1}> { a = Div(c, x) y = Exp(a) }",
    "zero - x": "g (float[4] x) => (float[4] y) <float c = {0}> { a = Sub(c, x) y = Exp(a) }",
    "one ** x": "g (float[4] x) => (float[4] y) <float c = {1}> { a = Pow(c, x) y = Exp(a) }",
    "a Clip that makes infinity finite": "g (float[4] x) => (float[4] y) { a = Clip(x) y = Exp(a) }",
    "not all ones": "g (float[2] x) => (float[2] y) <float[2] c = {1,2}> { a = Mul(x, c) y = Exp(a) }",
    "a Slice backwards": (
        "g (float[4] x) => (float[4] y) <int64[1] s = {-1}, int64[1] e = {-9}, int64[1] a = {0}, int64[1] t = {-1}> "
        "{ b = Slice(x, s, e, a, t) y = Exp(b) }"
    ),
    "a Slice of nothing, as far from the front as can be": (
        "g (float[4] x) => (float[0] y) <int64[1] s = {0}, int64[1] e = {-9223372036854775808}> "
        "{ b = Slice(x, s, e) y = Exp(b) }"
    ),
    "a Pad that cancels": (
        "g (float[4] x) => (float[4] y) <int64[2] p = {1,-1}> { a = Pad(x, p) y = Exp(a) }"
    ),
    "Reshape with two symbols": (
        "g (float[N,M] x, int64[2] s) => (float[P,Q] y) { a = Reshape(x, s) y = Exp(a) }"
    ),
    "a Slice of fewer rows from behind": (
        "g (float[N] x, float[M] k) => (float[P] y) <int64[1] e = {9223372036854775807}, "
        "int64[1] a = {0}, int64[1] t = {1}> "
        "{ n = Shape(k) s = Neg(n) b = Slice(x, s, e, a, t) y = Exp(b) }"
    ),
    "a Slice of all rows backwards": (
        "g (float[N] x, int64[1] s) => (float[N] y) <int64[1] e = {-9223372036854775807}, "
        "int64[1] a = {0}, int64[1] t = {-1}> { b = Slice(x, s, e, a, t) y = Exp(b) }"
    ),
    "CastLike a value of another type": (
        "g (float[4] x, double z) => (double[4] y) { a = CastLike(x, z) y = Exp(a) }"
    ),
    "Reshape to the shape of another value": (
        "g (float[N,M] x, float[P,Q] z) => (float[P,Q] y) { s = Shape(z) a = Reshape(x, s) y = Exp(a) }"
    ),
    "Flatten of a cube": "g (float[2,3,4] x) => (float[2,12] y) { a = Flatten(x) y = Exp(a) }",
    "Transpose of a square": (
        "g (float[4,4] x) => (float[4,4] y) { a = Transpose<perm=[1,0]>(x) y = Exp(a) }"
    ),
    "Dropout that may train": (
        "g (float[4] x, bool t) => (float[4] y) <float r = {0.5}> { a = Dropout(x, r, t) y = Exp(a) }"
    ),
    "an input that is the output": "g (float[4] x) => (float[4] y) { y = Identity(x) }",
    "the same value twice": "g (float[4] x) => (float[4] y, float[4] z) { y = Exp(x) z = Identity(y) }",
}


@pytest.mark.parametrize("graph", KEPT.values(), ids=KEPT.keys())
def test_keeps(graph: str) -> None:
    check_unchanged(noop_elimination, graph)


def test_a_slice_of_all_rows_from_behind() -> None:
    check_rewrite(
        noop_elimination,
        "g (float[N] x) => (float[N] y) <int64[1] e = {9223372036854775807}, int64[1] a = {0}, "
        "int64[1] t = {1}> { n = Shape(x) s = Neg(n) b = Slice(x, s, e, a, t) y = Exp(b) }",
        "g (float[N] x) => (float[N] y) { y = Exp(x) }",
    )


def test_integers_too() -> None:
    check_rewrite(
        noop_elimination,
        "g (int64[4] x) => (int64[4] y) <int64 c = {1}> { a = Div(x, c) y = Neg(a) }",
        "g (int64[4] x) => (int64[4] y) { y = Neg(x) }",
    )


def test_a_clip_of_integers_without_bounds() -> None:
    check_rewrite(
        noop_elimination,
        "g (int64[4] x) => (int64[4] y) { a = Clip(x) y = Neg(a) }",
        "g (int64[4] x) => (int64[4] y) { y = Neg(x) }",
    )


def test_one_row_backwards() -> None:
    check_rewrite(
        noop_elimination,
        "g (float[1,3] x) => (float[1,3] y) <int64[1] s = {-1}, int64[1] e = {-9}, int64[1] a = {0}, "
        "int64[1] t = {-1}> { b = Slice(x, s, e, a, t) y = Exp(b) }",
        "g (float[1,3] x) => (float[1,3] y) { y = Exp(x) }",
    )


RESIZED = "g (float[{n},3,8,8] x) => (float[{n},3,8,8] y) <int64[4] s = {{{n0},3,8,8}}> "
MODES = [
    "",
    '<mode="linear">',
    '<mode="cubic", coordinate_transformation_mode="align_corners">',
    '<mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor">',
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("opset", [13, 19, 25])
def test_resize_to_its_own_sizes(mode: str, opset: int) -> None:
    head = RESIZED.format(n=2, n0=2)
    check_rewrite(
        noop_elimination,
        f"{head} {{ r = Resize{mode}(x, , , s) y = Exp(r) }}",
        "g (float[2,3,8,8] x) => (float[2,3,8,8] y) { y = Exp(x) }",
        opset=opset,
    )


KEPT_SIZES = {
    "other sizes": "{ r = Resize(x, , , s) y = Exp(r) }",
    "a crop": '{ r = Resize<coordinate_transformation_mode="tf_crop_and_resize">(x, f, , e) '
    "y = Exp(r) }",
    "a policy": '{ r = Resize<keep_aspect_ratio_policy="not_larger">(x, , , e) y = Exp(r) }',
}


@pytest.mark.parametrize("body", KEPT_SIZES.values(), ids=KEPT_SIZES.keys())
def test_keeps_what_is_resized(body: str) -> None:
    check_unchanged(
        noop_elimination,
        "g (float[1,1,4,4] x) => (float[1,1,H,W] y) <int64[4] s = {1,1,4,5}, "
        f"int64[4] e = {{1,1,4,4}}, float[8] f = {{0,0,0,0,1,1,0.5,0.5}}> {body}",
    )


def test_an_output_keeps_its_name() -> None:
    check_rewrite(
        noop_elimination,
        "g (float[4] x) => (float[4] y) <float c = {1}> { e = Exp(x) y = Mul(e, c) }",
        "g (float[4] x) => (float[4] y) { y = Exp(x) }",
    )
