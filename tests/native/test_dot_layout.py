"""Which products of dense operands are one batch of matrices, and with which strides."""

from __future__ import annotations

import pytest

from smelt.native.kernels.dot_layout import Axis, Layout, layout_of
from smelt.program.dot_dims import DotDims

ROWS = [
    # contracting dims, batch dims, shapes, batch, m, n, k
    (((1,), (0,)), ((), ()), (2, 3), (3, 5), (), Axis(2, 3, 0), Axis(5, 0, 1), Axis(3, 1, 5)),
    (((2,), (0,)), ((), ()), (2, 4, 3), (3, 5), (), Axis(8, 3, 0), Axis(5, 0, 1), Axis(3, 1, 5)),
    (((1,), (0,)), ((), ()), (2, 3, 4), (3, 5), None, None, None, None),
    (((1,), (0,)), ((), ()), (1, 3, 4), (3, 5), (), Axis(4, 1, 0), Axis(5, 0, 1), Axis(3, 4, 5)),
    (((1,), (0,)), ((), ()), (2, 3, 1), (3, 5), (), Axis(2, 3, 0), Axis(5, 0, 1), Axis(3, 1, 5)),
    (((1, 2), (0, 1)), ((), ()), (2, 3, 4), (3, 4, 5), (), Axis(2, 12, 0), Axis(5, 0, 1), Axis(12, 1, 5)),
    (((1, 2), (1, 0)), ((), ()), (2, 3, 4), (4, 3, 5), None, None, None, None),
    (((1,), (1,)), ((), ()), (2, 3), (2, 3, 5), None, None, None, None),
    (((2,), (1,)), ((0,), (0,)), (2, 4, 3), (2, 3, 5), (Axis(2, 12, 15),), Axis(4, 3, 0), Axis(5, 0, 1), Axis(3, 1, 5)),
    (((2,), (1,)), ((0,), (0,)), (1, 4, 3), (1, 3, 5), (), Axis(4, 3, 0), Axis(5, 0, 1), Axis(3, 1, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("contracting", "batch_dims", "lhs", "rhs", "batch", "m", "n", "k"), ROWS)
def test_layouts(contracting, batch_dims, lhs, rhs, batch, m, n, k) -> None:
    found = layout_of(DotDims(*contracting, *batch_dims), lhs, rhs)
    assert found == (None if m is None else Layout(batch, m, n, k))
