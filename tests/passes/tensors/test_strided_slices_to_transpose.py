"""A Concat of strided Slices becomes one Transpose."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.tensors.strided_slices_to_transpose import strided_slices_to_transpose

NUMBERS = (
    "int64[2] s00 = {0,0}, int64[2] s10 = {1,0}, int64[2] s01 = {0,1}, int64[2] s11 = {1,1}, "
    "int64[2] e = {9223372036854775807, 9223372036854775807}, int64[2] a = {1,2}, "
    "int64[2] t = {2,2}, int64[1] o = {0}, int64[1] i = {1}, int64[1] two = {2}, "
    "int64[1] far = {9223372036854775807}, int64[1] h = {1}"
)
CUTS = (
    "p = Slice(x, s00, e, a, t) q = Slice(x, s10, e, a, t) "
    "r = Slice(x, s01, e, a, t) s = Slice(x, s11, e, a, t) "
)


def graph(
    body: str, x: str = "float[N,4,6,8]", y: str = "float[N,2,3,32]", constants: str = NUMBERS
) -> str:
    return f"g ({x} x) => ({y} y) <{constants}> {{ {body} }}"


@pytest.mark.parametrize(
    ("pieces", "perm"),
    [("p, q, r, s", "[0,1,3,4,2,5]"), ("p, r, q, s", "[0,1,3,2,4,5]")],
    ids=["rows first, as Swin", "columns first"],
)
def test_patches_become_channels(pieces: str, perm: str) -> None:
    check_rewrite(
        strided_slices_to_transpose,
        graph(f"{CUTS} y = Concat<axis=-1>({pieces})"),
        graph(
            f"k = Reshape(x, split) m = Transpose<perm={perm}>(k) y = Reshape(m, joined)",
            constants="int64[6] split = {0,2,2,3,2,8}, int64[4] joined = {0,2,3,32}",
        ),
    )


def test_places_along_one_axis_stand_in_the_order_of_their_starts() -> None:
    check_rewrite(
        strided_slices_to_transpose,
        graph(
            "p = Slice(x, o, far, h, two) q = Slice(x, i, far, h, two) y = Concat<axis=1>(p, q)",
            y="float[N,4,6,8]",
        ),
        graph(
            "k = Reshape(x, split) m = Transpose<perm=[0,2,1,3,4]>(k) y = Reshape(m, joined)",
            y="float[N,4,6,8]",
            constants="int64[5] split = {0,2,2,6,8}, int64[4] joined = {0,4,6,8}",
        ),
    )


@pytest.mark.parametrize("dtype", ["float16", "int64", "uint8"])
def test_any_type_whose_rows_have_16_bytes(dtype: str) -> None:
    body = f"{CUTS} y = Concat<axis=-1>(p, q, r, s)"
    check_rewrite(
        strided_slices_to_transpose,
        graph(body, f"{dtype}[2,4,6,16]", f"{dtype}[2,2,3,64]"),
        graph(
            "k = Reshape(x, split) m = Transpose<perm=[0,1,3,4,2,5]>(k) y = Reshape(m, joined)",
            f"{dtype}[2,4,6,16]",
            f"{dtype}[2,2,3,64]",
            "int64[6] split = {2,2,2,3,2,16}, int64[4] joined = {2,2,3,64}",
        ),
    )


KEPT = {
    "strings": graph(
        f"{CUTS} y = Concat<axis=-1>(p, q, r, s)", "string[2,4,6,16]", "string[2,2,3,64]"
    ),
    "a place twice": graph(f"{CUTS} y = Concat<axis=-1>(p, q, r, r)"),
    "an order that no axes count": graph(f"{CUTS} y = Concat<axis=-1>(p, q, s, r)"),
    "a place that is missing": graph(f"{CUTS} y = Concat<axis=-1>(p, q, r)", y="float[N,2,3,24]"),
    "an odd size": graph(
        "p = Slice(x, o, far, h, two) q = Slice(x, i, far, h, two) y = Concat<axis=1>(p, q)",
        "float[N,5,6,8]",
        "float[N,5,6,8]",
    ),
    "an open size": graph(
        f"{CUTS} y = Concat<axis=-1>(p, q, r, s)", "float[N,H,6,8]", "float[N,K,3,32]"
    ),
    "rows of 8 bytes": graph(
        f"{CUTS} y = Concat<axis=-1>(p, q, r, s)", "float[N,4,6,2]", "float[N,2,3,8]"
    ),
    "channels before rows": graph(
        CUTS.replace(" a,", " b,") + "y = Concat<axis=1>(p, q, r, s)",
        "float[N,8,4,6]",
        "float[N,32,2,3]",
        NUMBERS + ", int64[2] b = {2,3}",
    ),
    "nothing to join": graph(
        f"{CUTS} y = Concat<axis=-1>(p, q, r, s)", "float[N,0,6,8]", "float[N,0,3,32]"
    ),
    "not from the first row": graph(
        "p = Slice(x, o, far, h, two) q = Slice(x, two, far, h, two) y = Concat<axis=1>(p, q)",
        y="float[N,3,6,8]",
    ),
    "two tensors": (
        "g (float[N,4,6,8] x, float[N,4,6,8] z) => (float[N,4,6,8] y) <" + NUMBERS + "> { "
        "p = Slice(x, o, far, h, two) q = Slice(z, i, far, h, two) y = Concat<axis=1>(p, q) }"
    ),
    "a piece that is read": graph(f"{CUTS} y = Concat<axis=-1>(p, q, r, s) z = Neg(p)").replace(
        "y) <", "y, float[N,2,3,8] z) <"
    ),
    "a piece that is an output": graph(f"{CUTS} y = Concat<axis=-1>(p, q, r, s)").replace(
        "y) <", "y, float[N,2,3,8] p) <"
    ),
    "starts that are computed": (
        "g (float[N,4,6,8] x, int64[1] c) => (float[N,M,6,8] y) <" + NUMBERS + "> { "
        "p = Slice(x, c, far, h, two) q = Slice(x, i, far, h, two) y = Concat<axis=1>(p, q) }"
    ),
    "two open sizes behind": (
        "g (float[4,M,K,4] x) => (float[2,M,K,8] y) <int64[1] z = {0}, " + NUMBERS + "> { "
        "p = Slice(x, o, far, z, two) q = Slice(x, i, far, z, two) y = Concat<axis=-1>(p, q) }"
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_other_strided_slices_stay(case: str) -> None:
    check_unchanged(strided_slices_to_transpose, KEPT[case])
