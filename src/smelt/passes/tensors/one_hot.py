"""Recognize one-hot vectors: ONNX's OneHot, and indices compared with 0, 1, 2 and so on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op, var
from smelt.ir.rule import Match, Miss

_ones = op("OneHot", var("indices"), var("depth"), const(name="values"), name="onehot")
_equal = op("Equal", var("column"), const(name="positions"), commutative=True)
_truths = op("Where", _equal, const(1, ulp=0), const(0, ulp=0))

ONE_HOT = one_of(_ones, op("Cast", _ones), op("Cast", _equal), _truths)
"""One-hot vectors along the last axis."""


@dataclass(frozen=True)
class OneHot:
    """The ``indices`` of one-hot vectors; ``signed``: negative ones count from the end.

    With ``unit``, the indices have a last dim of size 1, which the vectors replace.
    """

    indices: ir.Value
    signed: bool
    unit: bool


def one_hot(m: Match) -> OneHot | Miss:
    """Return the indices of the vectors that ``ONE_HOT`` matched, or a Miss."""
    if m.get("onehot") is None:
        return _compared(m)
    indices, axis = m["indices"], m.node("onehot").attributes.get_int("axis", -1)
    rank = len(indices.shape) if indices.shape is not None else None
    if axis not in (-1, rank):
        return Miss("the axis of the OneHot is not the last")
    values = m.array("values")
    if values is None or values.tolist() != [0, 1]:
        return Miss("the values of the OneHot are not the constants 0 and 1")
    return OneHot(indices, signed=True, unit=False)


def _compared(m: Match) -> OneHot | Miss:
    """Return the indices that are compared with 0, 1, 2 and so on, or a Miss."""
    column, positions = m["column"], m.array("positions", limit=None)
    if column.dtype is None or not column.dtype.is_integer():
        return Miss("the compared indices are not known to be integers")
    if column.shape is None:
        return Miss("the rank of the compared indices is unknown")
    if positions is None:
        return Miss("the indices are not compared with constant positions")
    if not positions.ndim or positions.ndim > len(column.shape):
        return Miss("the rank of the positions is 0, or above that of the indices")
    if column.shape[-1] != 1:
        return Miss("the last dim of the compared indices is not 1")
    if positions.size != positions.shape[-1]:
        return Miss("the positions are not one row")
    if not np.array_equal(positions.reshape(-1), np.arange(positions.size)):
        return Miss("the positions are not 0, 1, 2 and so on")
    return OneHot(column, signed=False, unit=True)


def gather_indices(b: Builder, vectors: OneHot) -> ir.Value:
    """Return the indices in the shape and type that Gather needs."""
    indices = vectors.indices
    if vectors.unit:
        indices = b.op("Squeeze", indices, b.const_i64([-1]))
    if indices.dtype not in (ir.DataType.INT32, ir.DataType.INT64):
        indices = b.op("Cast", indices, to=int(ir.DataType.INT64))
    return indices
