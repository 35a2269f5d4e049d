"""Tables of 4-bit codes, two in a byte, whose rows a Gather reads."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.onnxruntime.microsoft.packed import rows_body
from smelt.precision.int8.candidates import Weight
from smelt.precision.int8.linear import Codes
from smelt.targets.ort.blocks import two_a_byte

ROWS = {"bits": 4, "quantize_axis": 1, "gather_axis": 0}
"""How codes of the rows of a table are stored: as GatherBlockQuantized reads them."""


def has_whole_blocks(node: ir.Node, weight: Weight, block: int) -> bool:
    """True if blocks fill the rows of the table that the Gather ``node`` reads at known ranks."""
    indices, shape = node.inputs[1], weight.value.shape
    if not block or indices is None or indices.shape is None or shape is None:
        return False
    return isinstance(shape[1], int) and shape[1] % block == 0


def two_codes_a_byte(codes: Codes) -> np.ndarray:
    """Return int4 ``codes`` plus 8 as uint8, the lower bits of a byte first."""
    return two_a_byte((codes.codes.astype(np.int8) + 8).astype(np.uint8), 4)


def unpacked_rows(
    b: Builder, stored: ir.Value, indices: ir.Value | None, scale: ir.Value, block: int
) -> ir.Value:
    """Build the rows at ``indices`` of a table of codes, as floats, by standard operators."""
    rows = rows_body(b, [stored, indices, scale], {**ROWS, "block_size": block})
    assert rows is not None
    return rows[0]
