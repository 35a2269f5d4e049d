"""Sizes that are cut to a table, where they meet whole ones."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.symbolic_dims.clamped_dims import (
    all_equal_if_broadcast,
    broadcast_sizes,
    equal_if_broadcast,
)


def dim(size: int | str) -> int | ir.SymbolicDim:
    return size if isinstance(size, int) else ir.SymbolicDim(size)


LAST_ROWS = "Max(0, Min(P + S, 64) - Min(P, 64))"
"""Those of ``table[P : P + S]``."""


@pytest.mark.parametrize(
    ("rows", "columns", "found"),
    [
        (("S", LAST_ROWS), ("P + S", "Min(P + S, 64)"), ("S", "P + S")),
        ((LAST_ROWS, "S"), ("Min(P + S, 64)", "P + S"), ("S", "P + S")),
        (("S", LAST_ROWS), ("P + S", "Min(P + S, 32)"), ("S", "P + S")),
        ((1, "Max(0, Min(P + 1, 64) - Min(P, 64))"), ("P + 1", "Min(P + 1, 64)"), (1, "P + 1")),
        (("S", LAST_ROWS), ("P + S", "Min(P + S, 96)"), (None, "P + S")),
        (("S", LAST_ROWS), ("Q", "Min(Q, 64)"), (None, "Q")),
        (("R", LAST_ROWS), ("P + S", "Min(P + S, 64)"), (None, "P + S")),
        (("S", LAST_ROWS), ("P + S", "Min(1, P + S)"), (None, "P + S")),
        (("S", LAST_ROWS), ("P + S", "T"), (None, None)),
        (("N - 1", "Max(0, N - 1)"), ("M", "Min(M, 8)"), ("N - 1", "M")),
        (("Max(0, N - M)", "N - M"), ("M", "Min(M, 8)"), ("N - M", "M")),
        (("Max(0, N - 2)", "N - 1"), ("M", "Min(M, 8)"), (None, "M")),
    ],
)
def test_one_axis_resolves_the_clamped_size_of_another(
    rows: tuple[int | str, str], columns: tuple[str, str], found: tuple[int | str | None, ...]
) -> None:
    met = {2: [dim(row) for row in rows], 1: [ir.SymbolicDim(column) for column in columns]}
    sizes = broadcast_sizes(met)
    assert (sizes.get(2), sizes.get(1)) == found


def test_rows_of_a_mask_that_has_a_column_for_each_key() -> None:
    scores = [dim("S"), dim("P + S")]
    assert all_equal_if_broadcast([dim(LAST_ROWS), dim("Min(P + S, 64)")], scores) == [True, True]
    assert all_equal_if_broadcast([dim(LAST_ROWS), dim("P + S")], scores) == [False, True]
    assert all_equal_if_broadcast([dim(1), dim("Min(P + S, 64)")], scores) == [False, True]


@pytest.mark.parametrize(
    ("size", "whole", "equal"),
    [
        *((3, 3, True), (1, 3, False), ("S", "S", True), ("S", "T", False), (1, "S", False)),
        *(("Min(S, 64)", "S", True), ("Min(1, S)", "S", False), ("Min(S, T)", "S", False)),
        ("Max(0, S - 1)", "S - 1", True),
        ("Max(0, S - 2)", "S - 1", False),
        ("Max(1, S - 1)", "S - 1", False),
    ],
)
def test_a_size_that_is_the_whole_one(size: int | str, whole: int | str, equal: bool) -> None:
    assert equal_if_broadcast(dim(size), dim(whole)) == equal


def test_a_mask_with_a_cache_cut_from_a_square_of_64() -> None:
    """As GPT-2, GPT-Neo and CodeGen keep it; beyond 64 positions the columns do not fit."""
    source = (
        "g (float[B,2,S,8] q, float[B,2,P,8] past, bool[1,1,64,64] square, float low) => () "
        "{ keys = Concat<axis=2>(past, q) t = Transpose<perm=[0,1,3,2]>(keys) s = MatMul(q, t) "
        "end = Shape<start=2, end=3>(keys) n = Shape<start=2, end=3>(q) begin = Sub(end, n) "
        "two = Constant<value_ints=[2]>() three = Constant<value_ints=[3]>() "
        "zero = Constant<value_ints=[0]>() rows = Slice(square, begin, end, two) "
        "mask = Slice(rows, zero, end, three) y = Where(mask, s, low) }"
    )
    model = text.parse(source)
    ShapeInference(model).infer_model()
    (y,) = next(node for node in model.graph if node.op_type == "Where").outputs
    assert y.shape == ["B", 2, "S", "P + S"]
