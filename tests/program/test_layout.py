"""A layout orders, blocks and pads the elements of a tensor, and gives them back."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smelt.errors import UsageError
from smelt.program.instruction import Program, Slot
from smelt.program.layout import Layout

NHWC = Layout("NCHW", "NHWC")


def test_a_permutation_is_a_transpose() -> None:
    x = np.arange(24).reshape(1, 2, 3, 4)
    np.testing.assert_array_equal(NHWC.pack(x), x.transpose(0, 2, 3, 1))


def test_a_block_is_innermost_and_padded_with_zeros() -> None:
    packed = Layout("NC", "NC4c").pack(np.arange(1, 7).reshape(1, 6))
    assert packed.tolist() == [[[1, 2, 3, 4], [5, 6, 0, 0]]]


def test_rows_are_padded_by_a_block_beside_what_is_left() -> None:
    assert Layout("HW", "HW4w").pack(np.ones((2, 3))).reshape(2, 4).tolist() == [[1, 1, 1, 0]] * 2


def test_two_levels_interleave() -> None:
    """As dot products of pairs want it: two inputs side by side for each of four outputs."""
    w = np.arange(16).reshape(4, 4)  # [k][n]
    packed = Layout("KN", "NK4n2k").pack(w).reshape(2, 4, 2)
    for k, n in product(range(4), range(4)):
        assert packed[k // 2, n, k % 2] == w[k, n]


def test_blocks_of_blocks() -> None:
    order = Layout("O", "O2o3o").pack(np.arange(7))
    assert order.shape == (2, 2, 3)
    assert order.reshape(-1)[:7].tolist() == list(range(7))


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Layout, tuple[int, ...]]:
    axes = "ABCD"[: draw(st.integers(1, 4))]
    blocks = [
        f"{n}{axis.lower()}" for axis in axes for n in draw(st.lists(st.integers(1, 4), max_size=2))
    ]
    order = draw(st.permutations([*axes, *blocks]))
    return Layout(axes, "".join(order)), tuple(draw(st.integers(0, 6)) for _ in axes)


@settings(max_examples=80, deadline=None)
@given(layouts(), st.data())
def test_layouts_unpack_packed_tensors_and_cut_boxes(
    drawn: tuple[Layout, tuple[int, ...]], data: st.DataObject
) -> None:
    layout, shape = drawn
    x = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape)
    packed = layout.pack(x)
    assert packed.shape == layout.stored(shape)
    np.testing.assert_array_equal(layout.unpack(packed, shape), x)
    assert sorted(packed[packed > 0].tolist()) == x.reshape(-1).tolist()
    axis = data.draw(st.integers(0, len(shape) - 1))
    start = data.draw(st.integers(0, shape[axis]))
    stop = data.draw(st.integers(start, shape[axis]))
    box = layout.box(shape, {axis: (start, stop)})
    whole = layout.block(axis)
    assert (box is None) == bool(start % whole or (stop % whole and stop != shape[axis]))
    if box is not None:
        part = [slice(None)] * len(shape)
        part[axis] = slice(start, stop)
        inside = packed[tuple(slice(*each) for each in box)]
        np.testing.assert_array_equal(inside, layout.pack(x[tuple(part)]))


@pytest.mark.parametrize(
    ("axes", "order"), [("NC", "N"), ("NC", "NCC"), ("NC", "NX"), ("NC", "NC0c"), ("NC", "NC c")]
)
def test_invalid_layouts_are_refused(axes: str, order: str) -> None:
    with pytest.raises(UsageError, match="is not a layout of 'NC'"):
        Layout(axes, order)


def test_a_slot_takes_the_bytes_of_its_padding() -> None:
    slot = Slot(ir.DataType.INT8, (1, 3, 5, 5), "x", layout=Layout("NCHW", "NHWC16c"))
    assert (slot.size, slot.stored, slot.nbytes) == (75, (1, 5, 5, 1, 16), 400)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1, -2, 3]).astype(ml_dtypes.int4), "e103"),
        (np.array([1, 2], np.int16), "01000200"),
        (np.array([True, False]), "0100"),
    ],
)
def test_bytes_of_constants(array: Any, expected: str) -> None:
    dtype = ir.DataType.from_numpy(array.dtype)
    slots = [Slot(dtype, array.shape, "w")]
    program = Program("p", slots, (), (0,), {0: array}, [])
    assert program.bytes_of(0).hex() == expected
    assert len(program.bytes_of(0)) == slots[0].nbytes
