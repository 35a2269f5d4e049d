"""Positions of elements in nested loops: strides, broadcasting, and loops that are merged."""

from __future__ import annotations

import itertools

import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt.native.kernels.nest import Access, broadcast_strides, collapse, index, row_major
from smelt.native.types import C_TYPES

FLOAT = C_TYPES[ir.DataType.FLOAT]

TEXTS = {
    "no dims": ((), (), 0, "0"),
    "an offset alone": ((0,), ("i",), 7, "7"),
    "a stride of 1": ((1,), ("i",), 0, "i"),
    "a stride of 2": ((2,), ("i",), 0, "i * 2"),
    "a stride of 0": ((0, 3), ("i", "j"), 0, "j * 3"),
    "backward": ((-1, -4), ("i", "j"), 9, "9 + i * (-1) + j * (-4)"),
    "an offset first": ((12, 1), ("i", "j"), 5, "5 + i * 12 + j"),
}


@pytest.mark.parametrize(("strides", "names", "offset", "text"), TEXTS.values(), ids=TEXTS)
def test_the_c_of_a_position(
    strides: tuple[int, ...], names: tuple[str, ...], offset: int, text: str
) -> None:
    assert index(strides, names, offset) == text
    assert Access("x", FLOAT, strides, offset).at(names) == f"x[{text}]"


SHAPES = st.lists(st.integers(1, 4), max_size=4).map(tuple)


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, data=st.data())
def test_strides_are_those_of_numpy(shape: tuple[int, ...], data: st.DataObject) -> None:
    dense = np.zeros(shape, np.int8)
    assert row_major(shape) == tuple(
        stride if size > 1 else step
        for stride, size, step in zip(dense.strides, shape, row_major(shape), strict=True)
    )
    narrow = tuple(data.draw(st.sampled_from([1, size])) for size in shape)
    start = data.draw(st.integers(0, len(shape)))
    wide = np.broadcast_to(np.zeros(narrow[start:], np.int8), shape)
    found = broadcast_strides(narrow[start:], shape)
    for size, ours, theirs in zip(shape, found, wide.strides, strict=True):
        assert size == 1 or ours == theirs


@settings(max_examples=60, deadline=None)
@given(shape=SHAPES, data=st.data())
def test_merged_loops_visit_the_same_elements_in_order(
    shape: tuple[int, ...], data: st.DataObject
) -> None:
    orders = [data.draw(st.permutations(range(len(shape)))) for _ in range(2)]
    accesses = []
    for order in orders:
        turned = row_major([shape[dim] for dim in order])
        accesses.append(
            Access("x", FLOAT, tuple(turned[order.index(dim)] for dim in range(len(shape))), 3)
        )
    sizes, merged = collapse(shape, accesses)
    assert 1 not in sizes
    assert len(sizes) <= len(shape)
    for before, after in zip(accesses, merged, strict=True):
        assert _visited(shape, before) == _visited(sizes, after)


def _visited(sizes: tuple[int, ...], access: Access) -> list[int]:
    places = itertools.product(*map(range, sizes))
    return [
        access.offset + sum(a * b for a, b in zip(place, access.strides, strict=True))
        for place in places
    ]


def test_a_dense_nest_is_one_loop() -> None:
    dense = Access("x", FLOAT, row_major((2, 3, 1, 4)))
    assert collapse((2, 3, 1, 4), [dense, dense]) == ((24,), [Access("x", FLOAT, (1,))] * 2)
    rows = Access("y", FLOAT, (4, 0, 0, 1))
    assert collapse((2, 3, 1, 4), [dense, rows]) == (
        (2, 3, 4),
        [Access("x", FLOAT, (12, 4, 1)), Access("y", FLOAT, (4, 0, 1))],
    )
