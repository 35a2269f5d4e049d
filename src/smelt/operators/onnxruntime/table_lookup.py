"""Build the numbers of NF4 codes by standard operators: a Gather from a table of 16 numbers."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import static_shape
from smelt.operators.onnxruntime.four_bits import NF4


def nf4_numbers(b: Builder, codes: ir.Value, like: ir.Value) -> ir.Value:
    """Build the numbers of ``codes``, integers from 0 to 15, in the type of ``like``."""
    assert like.dtype is not None
    table = b.constant(NF4.astype(like.dtype.numpy()))
    return b.op("Gather", table, b.op("Cast", codes, to=int(ir.DataType.INT32)), axis=0)


def nf4_rows(
    b: Builder,
    stored: ir.Value,
    indices: ir.Value,
    scales: ir.Value,
    block: int,
    *,
    high_first: bool,
) -> ir.Value:
    """Build the rows at ``indices`` of a table: bytes ``stored`` of two codes, one scale a block.

    ``stored`` is [rows, length / 2], ``scales`` [rows, length / block]. Only the bytes of the rows
    that are read are unpacked. ``high_first``: the first code of a byte has its upper bits.
    """
    shape = static_shape(stored)
    assert indices.shape is not None
    assert shape is not None
    length = 2 * shape[1]
    leading_dims = [0] * len(indices.shape)
    gathered, factors = (b.op("Gather", each, indices, axis=0) for each in (stored, scales))
    integers = b.op("Cast", gathered, to=int(ir.DataType.INT32))
    sixteen = b.const_like(16, integers)
    high = b.op("Div", integers, sixteen)
    low = b.op("Sub", integers, b.op("Mul", high, sixteen))
    last = b.const_i64([-1])
    both = (high, low) if high_first else (low, high)
    pairs = b.op("Concat", *(b.op("Unsqueeze", each, last) for each in both), axis=-1)
    split = b.const_i64([*leading_dims, length // block, block])
    numbers = nf4_numbers(b, b.op("Reshape", pairs, split), scales)
    scaled = b.op("Mul", numbers, b.op("Unsqueeze", factors, last))
    return b.op("Reshape", scaled, b.const_i64([*leading_dims, length]))
