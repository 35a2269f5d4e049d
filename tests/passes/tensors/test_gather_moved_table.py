"""Moves of gathered rows become moves of the constant table."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_unchanged, run_pass

from smelt.ir import text
from smelt.passes.tensors.gather_moved_table import gather_moved_table
from smelt.runtime.runner import run

T = "float[3,2] t = {1, 2, 3, 4, 5, -0.0}"
PLACES = "int64[2,2] i = {0, 2, -1, 1}"
MOVED = {
    "GatherND, turned and raised (LeViT)": (
        f"float[1,2,2,2] y <{T}, int64[2,2,1] i = {{0, 2, -1, 1}}, int64[1] a = {{0}}>",
        "g = GatherND(t, i) u = Transpose<perm=[2, 0, 1]>(g) y = Unsqueeze(u, a)",
        2,
    ),
    "flat indices that a Reshape splits (CoAtNet)": (
        f"float[2,2,2] y <{T}, int64[4] i = {{0, 2, -1, 1}}, int64[3] s = {{2, 2, 2}}>",
        "g = Gather(t, i) u = Reshape(g, s) y = Transpose<perm=[2, 0, 1]>(u)",
        1,
    ),
    "transposed indices": (
        f"float[2,2,2] y <{T}, {PLACES}>",
        "g = Gather(t, i) y = Transpose<perm=[2, 1, 0]>(g)",
        1,
    ),
    "another axis": (
        f"float[2,1,3] y <{T}, int64[2] j = {{1, 0}}, int64[3] s = {{2, 1, 3}}>",
        "g = Gather<axis=-1>(t, j) u = Transpose<perm=[1, 0]>(g) y = Reshape(u, s)",
        0,
    ),
    "a Squeeze": (
        "float[2,2] y <float[1,3,2] t = {1, 2, 3, 4, 5, 6}, int64[2] i = {2, 0}, int64[1] a = {0}>",
        "g = Gather<axis=1>(t, i) y = Squeeze(g, a)",
        0,
    ),
    "one row": (
        f"float[1,2,1] y <{T}, int64 i = {{1}}, int64[3] s = {{1, 2, 1}}>",
        "g = Gather(t, i) y = Reshape(g, s)",
        1,
    ),
    "halves": (
        "float16[2,2] y <float16[3,2] t = {1, 2, 3, 4, 5, 6}, int64[2] i = {2, 0}>",
        "g = Gather(t, i) y = Transpose<perm=[1, 0]>(g)",
        1,
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_the_table_is_moved_instead(name) -> None:
    head, body, axis = MOVED[name]
    graph = f"g () => ({head} {{ {body} }}".replace(" y <", " y) <")
    source, model = text.parse(graph, 20), text.parse(graph, 20)
    run_pass(gather_moved_table, model)
    [node] = model.graph
    assert node.op_type == "Gather"
    assert node.attributes.get_int("axis", 0) == axis
    expected, found = (run(each, [])[0] for each in (source, model))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


KEPT = {
    "a table that other nodes read": (
        f"g () => (float[2,2,2] y, float[3,2] z) <{T}, {PLACES}> "
        "{ g = Gather(t, i) y = Transpose<perm=[2, 0, 1]>(g) z = Neg(t) }"
    ),
    "rows that other nodes read": (
        f"g () => (float[2,2,2] y, float[2,2,2] z) <{T}, {PLACES}> "
        "{ g = Gather(t, i) y = Transpose<perm=[2, 0, 1]>(g) z = Neg(g) }"
    ),
    "rows that are an output": (
        f"g () => (float[2,2,2] y, float[2,2,2] g) <{T}, {PLACES}> "
        "{ g = Gather(t, i) y = Transpose<perm=[2, 0, 1]>(g) }"
    ),
    "indices that are parted": (
        f"g () => (float[2,2,2] y) <{T}, {PLACES}> "
        "{ g = Gather(t, i) y = Transpose<perm=[0, 2, 1]>(g) }"
    ),
    "dims of indices merged with those of the row": (
        f"g () => (float[2,4] y) <{T}, {PLACES}, int64[2] s = {{2, 4}}> "
        "{ g = Gather(t, i) y = Reshape(g, s) }"
    ),
    "computed indices": (
        f"g (int64[2] i) => (float[2,2] y) <{T}> "
        "{ g = Gather(t, i) y = Transpose<perm=[1, 0]>(g) }"
    ),
    "a computed table": (
        "g (float[3,2] t) => (float[2,2] y) <int64[2] i = {2, 0}> "
        "{ g = Gather(t, i) y = Transpose<perm=[1, 0]>(g) }"
    ),
    "a size of 0": (
        "g () => (float[0,2] y) <float[3,2] t = {1, 2, 3, 4, 5, 6}, int64[0,1] i = {}, "
        "int64[1] a = {1}> { g = Gather(t, i) y = Squeeze(g, a) }"
    ),
    "pairs of indices": (
        f"g () => (float[2] y) <{T}, int64[2,2] i = {{0, 1, 2, 0}}> {{ y = GatherND(t, i) }}"
    ),
    "batches": (
        f"g () => (float[3] y) <{T}, int64[3,1] i = {{0, 1, 0}}> "
        "{ y = GatherND<batch_dims=1>(t, i) }"
    ),
    "indices of a GatherND that a run decides": (
        f"g (int64[2,1] i) => (float[2,2] y) <{T}> {{ y = GatherND(t, i) }}"
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_gathers_stay(name) -> None:
    check_unchanged(gather_moved_table, KEPT[name], opset=20)
