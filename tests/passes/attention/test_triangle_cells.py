"""Operators on the three cells of a triangle give the cells of their result on the whole square."""

from itertools import product

import numpy as np
import onnx_ir as ir
import pytest

from smelt.passes.attention import triangle_cells
from smelt.passes.attention.triangle_cells import COLUMNS, ROWS, Cells, uniform

SIZE = 5
SIDES = np.sign(np.arange(SIZE)[:, None] - np.arange(SIZE))


def square(cells: Cells) -> np.ndarray:
    """Return the square matrix that ``cells`` describe."""
    before, diagonal, after = cells.numbers
    return np.where(SIDES > 0, before, np.where(SIDES == 0, diagonal, after))


@pytest.mark.parametrize("kind", ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"])
def test_positions_compare_as_rows_and_columns_do(kind: str) -> None:
    compare = getattr(np, {"GreaterOrEqual": "greater_equal", "LessOrEqual": "less_equal"}.get(
        kind, kind.lower()))  # fmt: skip
    rows, columns = np.indices((SIZE, SIZE))
    for (a, x), (b, y) in product([(ROWS, rows), (COLUMNS, columns)], repeat=2):
        cells = triangle_cells.elementwise(
            kind, [Cells(a, are_positions=True), Cells(b, are_positions=True)]
        )
        assert cells is not None
        np.testing.assert_array_equal(square(cells), compare(x, y))


def test_positions_have_an_order_and_nothing_else() -> None:
    rows, columns = Cells(ROWS, are_positions=True), Cells(COLUMNS, are_positions=True)
    assert triangle_cells.elementwise("Sub", [rows, columns]) is None
    assert triangle_cells.elementwise("Greater", [rows, uniform(np.int64(0))]) is None
    assert triangle_cells.trilu(rows, upper=False, k=0) is None
    assert not rows.is_uniform


def test_operators_work_on_cells_as_on_elements() -> None:
    flags, numbers = Cells(np.array([True, False, True])), Cells(np.float32([1, -0.0, np.nan]))
    chosen = triangle_cells.elementwise("Where", [flags, numbers, uniform(np.float32(7))])
    assert chosen is not None
    np.testing.assert_array_equal(square(chosen), np.where(square(flags), square(numbers), 7))
    assert not numbers.is_uniform
    assert uniform(np.float32(7)).is_uniform


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("k", range(-2, 3))
def test_trilu_keeps_whole_cells_or_is_not_read(upper: bool, k: int) -> None:
    cells = Cells(np.array([3, 4, 5]))
    expected = np.triu(square(cells), k) if upper else np.tril(square(cells), k)
    kept = triangle_cells.trilu(cells, upper, k)
    assert (kept is None) == (k not in ((0, 1) if upper else (-1, 0)))
    if kept is not None:
        np.testing.assert_array_equal(square(kept), expected)


def test_casts_that_runtimes_agree_on() -> None:
    flags, numbers = Cells(np.array([True, True, False])), Cells(np.float32([0.5, 1, -3e38]))
    rows = Cells(ROWS, are_positions=True)
    for cells, dtype in ((flags, ir.DataType.FLOAT), (flags, ir.DataType.INT8),
                         (numbers, ir.DataType.BOOL), (numbers, ir.DataType.FLOAT16)):  # fmt: skip
        cast = triangle_cells.cast(cells, dtype)
        assert cast is not None
        assert cast.numbers.dtype == dtype.numpy()
    assert triangle_cells.cast(numbers, ir.DataType.INT32) is None
    assert triangle_cells.cast(rows, ir.DataType.INT32) is rows
    assert triangle_cells.cast(rows, ir.DataType.INT8) is None


def test_arrays_are_read_if_they_are_triangles() -> None:
    cells = Cells(np.array([3, 4, 5]))
    read = triangle_cells.triangles(np.stack([square(cells)] * 2))
    assert read is not None
    np.testing.assert_array_equal(read.numbers, cells.numbers)
    for at in ((4, 0), (2, 2), (0, 4)):
        other = square(cells)
        other[at] = 9
        assert triangle_cells.triangles(other) is None
        assert triangle_cells.triangles(np.stack([square(cells), other])) is None
