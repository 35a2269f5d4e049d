"""Store the codes of a table, such as an embedding, for a Gather and a product that read it.

A table of 4-bit codes is stored two in a byte. If a product also reads the table, int4 codes are
stored once, and operators on this constant make the bytes. Runtimes compute them as they load.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.same_shape import static_shape
from smelt.operators.onnxruntime.four_bits import ZERO_OF_NF4
from smelt.operators.onnxruntime.microsoft.packed import rows_body
from smelt.operators.onnxruntime.table_lookup import nf4_numbers, nf4_rows
from smelt.precision.int8.candidates import Weight, weight_of
from smelt.precision.int8.linear import Codes
from smelt.targets.ort.blocks import two_a_byte

ROWS = {"bits": 4, "quantize_axis": 1, "gather_axis": 0}
"""How codes of the rows of a table are stored: as GatherBlockQuantized reads them."""


def has_whole_blocks(node: ir.Node, weight: Weight, block: int) -> bool:
    """True if ``block`` divides the rows of the table that the Gather ``node`` reads.

    ``unpacked_rows`` needs it, and the rank of the indices, too.
    """
    indices, shape = node.inputs[1], weight.value.shape
    if not block or indices is None or indices.shape is None or shape is None:
        return False
    return isinstance(shape[1], int) and shape[1] % block == 0


def tied_tables(nodes: Iterable[ir.Node], constants: Constants, block: int) -> frozenset[ir.Value]:
    """Return the tables that a Gather of ``nodes`` reads by row, and a product by its channels.

    A row of the table is then a channel of the product. With a ``block``, it must fill the rows.
    """
    gathered, by_channel, uneven = set(), set(), set()
    for node in nodes:
        weight = weight_of(node, constants)
        if not isinstance(weight, Weight):
            continue
        if node.op_type != "Gather":
            if weight.inner >= 0 and reads_channels_of_rows(weight):
                by_channel.add(weight.value)
        elif block and not has_whole_blocks(node, weight, block):
            uneven.add(weight.value)
        else:
            gathered.add(weight.value)
    return frozenset(gathered & by_channel - uneven)


def reads_channels_of_rows(weight: Weight) -> bool:
    """True if a channel of the product is a row of the matrix as it is stored."""
    return weight.axis == (1 if weight.transposed else 0)


def bytes_of_codes(b: Builder, codes: ir.Value) -> ir.Value:
    """Build what ``two_codes_a_byte`` returns for ``codes``, an int4 or uint4 matrix.

    ``(code & 15) ^ 8`` is the code of int4 plus 8; the byte is ``low | high << 4``.
    """
    shape = static_shape(codes)
    assert shape is not None
    rows, length = shape
    numbers = codes
    if codes.dtype == ir.DataType.INT4:
        signed = b.op("Cast", codes, to=int(ir.DataType.INT8))
        masked = b.op("BitwiseAnd", signed, b.constant(np.asarray(15, np.int8)))
        numbers = b.op("BitwiseXor", masked, b.constant(np.asarray(8, np.int8)))
    numbers = b.op("Cast", numbers, to=int(ir.DataType.UINT8))
    pairs = b.op("Reshape", numbers, b.const_i64([rows, length // 2, 2]))
    low, high = b.ops("Split", pairs, axis=2, num_outputs=2, outputs=2)
    four = b.constant(np.asarray(4, np.uint8))
    both = b.op("BitwiseOr", low, b.op("BitShift", high, four, direction="LEFT"))
    return b.op("Squeeze", both, b.const_i64([2]))


def two_codes_a_byte(codes: Codes) -> np.ndarray:
    """Return ``codes`` as uint8, int4 plus 8, the lower bits of a byte first."""
    numbers = codes.codes.astype(np.int8) + (0 if codes.is_nf4 else 8)
    return two_a_byte(numbers.astype(np.uint8), 4)


def unpacked_rows(
    b: Builder, stored: ir.Value, indices: ir.Value | None, scale: ir.Value, block: int
) -> ir.Value:
    """Build the rows at ``indices`` of a table of codes, as floats, by standard operators."""
    rows = rows_body(b, [stored, indices, scale], {**ROWS, "block_size": block})
    assert rows is not None
    return rows[0]


def whole_blocks(codes: Codes, axis: int) -> np.ndarray:
    """Return ``codes`` of NF4, padded along ``axis`` to whole blocks by codes of 0."""
    if codes.codes.shape[axis] % codes.block == 0:
        return codes.codes
    width = [(0, 0)] * codes.codes.ndim
    width[axis] = (0, -codes.codes.shape[axis] % codes.block)
    padded = np.pad(codes.codes.astype(np.uint8), width, constant_values=ZERO_OF_NF4)
    return padded.astype(codes.codes.dtype)


def looked_up_blocks(
    b: Builder, stored: ir.Value, scale: ir.Value, axis: int, block: int, length: int
) -> ir.Value:
    """Build the numbers of ``stored``, a matrix of NF4 codes in blocks along ``axis``.

    The first ``length`` numbers along ``axis`` are returned; the others pad the last block.
    """
    shape = static_shape(stored)
    assert shape is not None
    split = [*shape[:axis], shape[axis] // block, block, *shape[axis + 1 :]]
    numbers = b.op("Reshape", nf4_numbers(b, stored, scale), b.const_i64(split))
    scaled = b.op("Mul", numbers, b.op("Unsqueeze", scale, b.const_i64([axis + 1])))
    whole = b.op("Reshape", scaled, b.const_i64(shape))
    if length == shape[axis]:
        return whole
    return b.op("Slice", whole, *(b.const_i64([i]) for i in (0, length, axis)))


def looked_up_rows(
    b: Builder, stored: ir.Value, indices: ir.Value | None, scale: ir.Value, block: int
) -> ir.Value:
    """Build the rows at ``indices`` of a table of NF4 codes, two in a byte, as floats."""
    assert indices is not None
    return nf4_rows(b, stored, indices, scale, block, high_first=False)
