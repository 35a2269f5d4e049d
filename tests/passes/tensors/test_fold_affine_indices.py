"""Gathers whose indices count positions are dropped."""

from __future__ import annotations

import pytest
from rewrites import check_rewrite, check_same_numbers, check_unchanged

from smelt import optimize
from smelt.ir import text
from smelt.passes.tensors.fold_affine_indices import fold_affine_indices

COUNTS = (
    "n = Shape<start=0, end=1>(m) e = Squeeze(n) i = Range(zero, e, one) "
    "k = Shape<start=1, end=2>(m) f = Squeeze(k) j = Range(zero, f, one) "
    "b = Reshape(i, over) c = Reshape(j, along) h = Max(b, c) s = Shape(h) "
)
PAIRS = COUNTS + (
    "p = Expand(b, s) q = Expand(c, s) u = Unsqueeze(p, last) v = Unsqueeze(q, last) "
    "t = Concat<axis=-1>(u, v) "
)
NUMBERS = (
    "int64 zero = {0}, int64 one = {1}, int64[1] last = {-1}, "
    "int64[4] over = {-1,1,1,1}, int64[4] along = {1,1,1,-1}"
)


def graph(inputs: str, result: str, body: str, constants: str = "") -> str:
    listed = ", ".join(filter(None, [NUMBERS, constants]))
    return f"g ({inputs}) => ({result}) <{listed}> {{ {body} }}"


def test_a_mask_read_at_all_its_places() -> None:
    check_rewrite(
        fold_affine_indices,
        graph("bool[B,S] m", "bool[B,1,1,S] y", PAIRS + "y = GatherND(m, t)"),
        "g (bool[B,S] m) => (bool[B,1,1,S] y) <int64[2] a = {1,2}> { y = Unsqueeze(m, a) }",
    )


def test_a_mask_of_more_rows_than_are_read() -> None:
    before = graph("bool[B,S] m, bool[4,S] o", "bool[B,1,1,S] y", PAIRS + "y = GatherND(o, t)")
    model = optimize(text.parse(before, 21), pipeline="fold-affine-indices")
    assert "GatherND" not in {node.op_type for node in model.graph}
    check_same_numbers(text.parse(before, 21), model)


def test_a_mask_of_the_past_and_one_more() -> None:
    """A decoding step with a cache: no position is after the last, so the mask hides nothing."""
    before = text.parse(
        "g (float[B,2,P,4] past, bool[B,9] m) => (bool[B,1,1,L] y) <"
        + NUMBERS
        + "> { n = Shape<start=0, end=1>(past) e = Squeeze(n) i = Range(zero, e, one) "
        "k = Shape<start=2, end=3>(past) f = Squeeze(k) g = Add(f, one) j = Range(zero, g, one) "
        "b = Reshape(i, over) c = Reshape(j, along) h = Max(b, c) s = Shape(h) "
        "p = Expand(b, s) q = Expand(c, s) u = Unsqueeze(p, last) v = Unsqueeze(q, last) "
        "t = Concat<axis=-1>(u, v) o = GatherND(m, t) l = LessOrEqual(c, k) y = And(l, o) }",
        21,
    )
    model = optimize(before)
    found = {node.op_type for node in model.graph}
    assert found <= {"Shape", "Add", "Concat", "Slice", "Reshape"}
    check_same_numbers(before, model)


def test_rows_of_a_flattened_mask() -> None:
    body = COUNTS + "o = Mul(b, k) t = Add(c, o) r = Flatten<axis=2>(m) y = Gather<axis=0>(r, t)"
    before = text.parse(graph("bool[B,S] m", "bool[B,1,1,S,1] y", body), 21)
    model = optimize(before, pipeline="fold-affine-indices")
    assert "Gather" not in {node.op_type for node in model.graph}
    check_same_numbers(before, model)


def test_rows_in_order_of_a_constant() -> None:
    check_rewrite(
        fold_affine_indices,
        "g (float[2,3] m) => (float[2,1,3,1] y) <int64[2,1,3] i = {0,1,2,3,4,5}> "
        "{ r = Flatten<axis=2>(m) y = Gather<axis=0>(r, i) }",
        "g (float[2,3] m) => (float[2,1,3,1] y) <int64[4] s = {2,1,3,1}> { y = Reshape(m, s) }",
    )


def test_a_comparison_that_always_holds() -> None:
    before = graph(
        "bool[B,S] m, bool[B,1,1,S] a",
        "bool[B,1,S,S] y",
        COUNTS + "d = Reshape(j, up) g = GreaterOrEqual(d, zero) y = And(g, a)",
        "int64[4] up = {1,1,-1,1}",
    )
    model = optimize(text.parse(before, 21), pipeline="default")
    assert [node.op_type for node in model.graph] == ["Shape", "Concat", "Expand"]
    check_same_numbers(text.parse(before, 21), model)


def test_one_row_of_a_table() -> None:
    check_rewrite(
        fold_affine_indices,
        graph(
            "float[B,S,2] x",
            "float[B,S,2] y",
            "s = Shape<start=0, end=2>(x) i = Expand(one, s) r = Gather(w, i) y = Add(x, r)",
            "float[3,2] w = {1,2,3,4,5,6}",
        ),
        "g (float[B,S,2] x) => (float[B,S,2] y) <float[2] r = {3,4}> { y = Add(x, r) }",
    )


KEPT = {
    "places in another order": graph(
        "bool[B,S] m",
        "bool[S,B] y",
        COUNTS + "b2 = Reshape(i, row) c2 = Reshape(j, column) h2 = Max(b2, c2) s2 = Shape(h2) "
        "p = Expand(b2, s2) q = Expand(c2, s2) u = Unsqueeze(p, last) v = Unsqueeze(q, last) "
        "t = Concat<axis=-1>(u, v) y = GatherND(m, t)",
        "int64[2] row = {1,-1}, int64[2] column = {-1,1}",
    ),
    "places that are given": graph(
        "bool[B,S] m, int64[B,S,2] t", "bool[B,S] y", "y = GatherND(m, t)"
    ),
    "every other row": "g (float[4,3] m) => (float[2,3] y) <int64[2] i = {0,2}> "
    "{ y = Gather<axis=0>(m, i) }",
    "rows of a mask, but not all": "g (float[2,3] m) => (float[1,3,1] y) <int64[1,3] i = {0,1,2}> "
    "{ r = Flatten<axis=2>(m) y = Gather<axis=0>(r, i) }",
    "a row that is given": graph(
        "float[B,2] x, int64[B] i",
        "float[B,2] y",
        "r = Gather(w, i) y = Add(x, r)",
        "float[3,2] w = {1,2,3,4,5,6}",
    ),
    "a table that is given": graph(
        "float[B,2] x, float[3,2] w",
        "float[B,2] y",
        "s = Shape<start=0, end=1>(x) i = Expand(one, s) r = Gather(w, i) y = Add(x, r)",
    ),
    "a row that gives the batch": graph(
        "float[B] o, float[1,2] x",
        "float[B,2] y",
        "s = Shape(o) i = Expand(one, s) r = Gather(w, i) y = Add(x, r)",
        "float[3,2] w = {1,2,3,4,5,6}",
    ),
    "a row from the end": graph(
        "float[B,2] x",
        "float[B,2] y",
        "s = Shape<start=0, end=1>(x) i = Expand(minus, s) r = Gather(w, i) y = Add(x, r)",
        "float[3,2] w = {1,2,3,4,5,6}, int64 minus = {-1}",
    ),
}


@pytest.mark.parametrize("before", KEPT.values(), ids=KEPT)
def test_keeps(before: str) -> None:
    check_unchanged(fold_affine_indices, before)
