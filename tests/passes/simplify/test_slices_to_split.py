"""Neighbouring Slices of a whole axis become one Split."""

import pytest
from rewrites import check_rewrite, check_unchanged

from smelt.passes.simplify.slices_to_split import slices_to_split

NUMBERS = (
    "int64[1] o = {0}, int64[1] i = {2}, int64[1] j = {5}, int64[1] e = {9}, int64[1] a = {1}, "
    "int64[1] z = {-1}, int64[1] big = {9223372036854775807}, int64[1] back = {-4}"
)
THREE = "p = Slice(x, {}, i, a) q = Slice(x, i, j, a) r = Slice(x, {}, {}, a) "
NEGATED = "u = Neg(p) v = Neg(q) w = Neg(r)"
RESULTS = "float[N,2,3] u, float[N,3,3] v, float[N,4,3] w"


def graph(body: str, *, rows: str = "9", results: str = RESULTS, constants: str = NUMBERS) -> str:
    return f"g (float[N,{rows},3] x) => ({results}) <{constants}> {{ {body} }}"


@pytest.mark.parametrize("ends", [("o", "j", "e"), ("o", "back", "big")])
def test_parts_of_a_whole_axis_are_outputs_of_a_split(ends: tuple[str, str, str]) -> None:
    check_rewrite(
        slices_to_split,
        graph(THREE.format(*ends) + NEGATED),
        graph(
            "p, q, r = Split<axis=1>(x, s) " + NEGATED,
            constants="int64[3] s = {2,3,4}",
        ),
    )


def test_parts_may_be_cut_in_any_order() -> None:
    body = "r = Slice(x, j, e, a) p = Slice(x, o, i, a) q = Slice(x, i, j, a) "
    check_rewrite(
        slices_to_split,
        graph(body + NEGATED),
        graph("p, q, r = Split<axis=1>(x, s) " + NEGATED, constants="int64[3] s = {2,3,4}"),
    )


KEPT = {
    "two halves": graph(
        "p = Slice(x, o, i, a) q = Slice(x, i, e, a) u = Neg(p) v = Neg(q)",
        results="float[N,2,3] u, float[N,7,3] v",
    ),
    "a gap": graph(
        "p = Slice(x, o, i, a) q = Slice(x, i, back, a) r = Slice(x, i, j, a) s = Slice(x, j, e, a)"
        "t = Neg(q) " + NEGATED + " y = Neg(s)",
        results=RESULTS.replace("float[N,4,3] w", "float[N,3,3] w")
        + ", float[N,4,3] y, float[N,3,3] t",
    ),
    "rows that are left over": graph(THREE.format("o", "j", "e") + NEGATED, rows="10"),
    "an open axis": graph(
        THREE.format("o", "j", "big") + NEGATED,
        rows="K",
        results="float[N,U,3] u, float[N,V,3] v, float[N,W,3] w",
    ),
    "parts that are outputs": graph(
        THREE.format("o", "j", "e"), results="float[N,2,3] p, float[N,3,3] q, float[N,4,3] r"
    ),
    "a part backwards": graph(
        "p = Slice(x, o, i, a) q = Slice(x, i, j, a) r = Slice(x, z, m, a, z) " + NEGATED,
        constants=NUMBERS + ", int64[1] m = {4}",
    ),
    "a part of two axes": graph(
        "p = Slice(x, o, i, a) q = Slice(x, i, j, a) r = Slice(x, k, l, b) " + NEGATED,
        results="float[N,2,3] u, float[N,3,3] v, float[N,4,2] w",
        constants=NUMBERS + ", int64[2] k = {5,1}, int64[2] l = {9,3}, int64[2] b = {1,2}",
    ),
    "another axis": graph(
        "p = Slice(x, o, i, a) q = Slice(x, i, j, a) r = Slice(x, o, i, c) " + NEGATED,
        results="float[N,2,3] u, float[N,3,3] v, float[N,9,2] w",
        constants=NUMBERS + ", int64[1] c = {2}",
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_slices_stay(case: str) -> None:
    check_unchanged(slices_to_split, KEPT[case])
