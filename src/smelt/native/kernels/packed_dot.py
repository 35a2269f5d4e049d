"""MatMulNBits with constant 4-bit weights, which are converted to floats in registers.

For each block of a column, products with codes are summed. The sum of the left operand times the
zero point is subtracted from that, and the difference multiplied by the scale. Weights take 4 bits
in the binary.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized.int4_micro_kernel import NIBBLES, int4_micro_kernel, padded_row
from smelt.native.kernels.quantized.integer_vectors import MOST_SUMS
from smelt.native.kernels.quantized.operands import constant, is_present
from smelt.native.kernels.quantized.weight_blocks import BIAS, PLACES, SCALES, ZEROS, Blocks
from smelt.native.kernels.register_blocks import even_blocks
from smelt.native.kernels.rounded_packed_dot import emit_rounded, rounded_needs
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import highest
from smelt.program.storage import Needs

ROWS, VECTORS = 6, 2
ONE_ROW_VECTORS = 4
"""Micro-kernels compute ``ROWS`` rows of ``VECTORS`` vectors, or one row of ``ONE_ROW_VECTORS``."""


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    blocks = Blocks.of(instance)
    if blocks.bits not in ((4, 8) if blocks.rounds else (4,)):
        return "weights of other than 4 bits, or 8 where the left operand may be rounded"
    if blocks.size < NIBBLES or blocks.size % NIBBLES or min(blocks.columns, blocks.depth) < 1:
        return "a block size that is not a positive multiple of 8"
    if is_present(instance, PLACES):
        return "blocks that are not in order"
    present = [i for i in (1, SCALES, ZEROS, BIAS) if is_present(instance, i)]
    if any(constant(instance, i) is None for i in present):
        return "weights, scales, zero points or a bias that are not constant"
    types = {i: instance.type(i).name for i in (0, *present)}
    required = {0: "float", 1: "uint8_t", SCALES: "float", ZEROS: "uint8_t", BIAS: "float"}
    return None if all(required[i] == name for i, name in types.items()) else "other types"


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of prepared rows and of the sums of their blocks."""
    blocks = Blocks.of(instance)
    if blocks.rounds:
        return rounded_needs(instance)
    return Needs(workspace=4 * ROWS * (blocks.row + blocks.count))


@kernel("MatMulNBits", needs=_needs, refuse=_refuse, shared=True)
def packed_dot(cx: KernelContext) -> None:
    """Write loops over a few rows at a time and, for them, over all panels of columns."""
    if Blocks.of(cx).rounds:
        emit_rounded(cx)
        return
    source, output, body, blocks = cx.input(0), cx.output(), cx.body, Blocks.of(cx)
    rows, scratch = output.size // blocks.columns, cx.scratch(C_TYPES[ir.DataType.FLOAT])
    vectors = ONE_ROW_VECTORS if highest(rows) == 1 else VECTORS
    weights, scales, zeros, bias = _constants(cx, blocks, MOST_SUMS * vectors)
    shards_columns = highest(rows) < 2 * ROWS * body.parts
    row_loop, column_loop = body.loop, body.shared_loop
    if not shards_columns:
        row_loop, column_loop = column_loop, row_loop
    copy = padded_row(cx)
    sums = f"{scratch} + {ROWS * blocks.row}"
    for part in even_blocks(rows, ROWS):
        tiles = [
            int4_micro_kernel(cx, part.length, vectors, bool(zeros), finite=finite)
            for finite in (True, False)
        ]
        with row_loop("i", part.end, part.first, part.length):
            body.line("int finite = 1;")
            with body.loop("m", part.length):
                to = f"{scratch} + m * {blocks.row}, {sums} + m * {blocks.count}"
                row = f"{source.name} + (i + m) * {blocks.depth}"
                sizes = f"{blocks.depth}, {blocks.size}, {blocks.count}"
                body.line(f"finite = {copy}({row}, {sizes}, {to}) && finite;")
            with column_loop("j", blocks.columns, step=f"{vectors} * SUMS"):
                body.line(f"float results[{part.length * vectors} * SUMS];")
                size = blocks.size // NIBBLES
                panel = f"j / {MOST_SUMS} * {blocks.count * MOST_SUMS}"
                column_in_vector = f"j % {MOST_SUMS}"
                words = f"{weights} + {panel} * {size} + {column_in_vector}"
                operands = [f"{scratch}, {sums}, {words}, {scales} + {panel} + {column_in_vector}"]
                if zeros:
                    zero_words = -(-blocks.count // NIBBLES) * MOST_SUMS
                    operands.append(
                        f"{zeros} + j / {MOST_SUMS} * {zero_words} + {column_in_vector}"
                    )
                operands.append(f"{bias} + j, results")
                arguments = f"{blocks.count}, {size}, {', '.join(operands)}"
                body.line(f"if (finite) {tiles[0]}({arguments});")
                body.line(f"else {tiles[1]}({arguments});")
                _emit_results(cx, part.length, blocks.columns, f"{vectors} * SUMS")


def _emit_results(cx: KernelContext, rows: int, columns: int, tile_width: str) -> None:
    """Write the copy of results to the columns from ``j`` on, as many as exist."""
    body = cx.body
    body.line(f"const ptrdiff_t left = {columns} - j;")
    body.line(f"const ptrdiff_t n = left < {tile_width} ? left : {tile_width};")
    with body.loop("m", rows):
        to = f"{cx.output().name} + (i + m) * {columns} + j"
        body.line(f"memcpy({to}, results + m * {tile_width}, (size_t)n * sizeof(float));")


def _constants(cx: KernelContext, blocks: Blocks, panel: int) -> tuple[str, str, str, str]:
    """Return the C names of weights, scales, zero points and bias, packed in panels of columns.

    The name of absent zero points is empty.
    """
    arrays = [constant(cx, i) for i in (1, SCALES, ZEROS, BIAS)]
    codes, scales, zeros, bias = arrays
    assert codes is not None
    assert scales is not None
    word, float_ = C_TYPES[ir.DataType.UINT32], C_TYPES[ir.DataType.FLOAT]
    start_values = np.zeros(blocks.columns, np.float32) if bias is None else bias.reshape(-1)
    missing_columns = -blocks.columns % panel
    names = [cx.constant(_words(codes, blocks.columns, blocks.row, panel), word)]
    by_block = np.pad(scales.reshape(blocks.columns, -1), ((0, missing_columns), (0, 0)))
    by_panel = by_block.reshape(-1, MOST_SUMS, blocks.count).transpose(0, 2, 1)
    names.append(cx.constant(by_panel.reshape(-1).astype(np.float32), float_))
    if zeros is not None:
        names.append(cx.constant(_words(zeros, blocks.columns, blocks.count, panel), word))
    else:
        names.append("")
    names.append(cx.constant(np.pad(start_values, (0, missing_columns)).astype(np.float32), float_))
    weights, factors, points, start = names
    return weights, factors, points, start


def _words(packed: np.ndarray, columns: int, count: int, panel: int) -> np.ndarray:
    """Return ``count`` codes of each column as words of eight codes.

    The order is panel of columns, word, column. A byte of ``packed`` has its first code in the low
    bits.
    """
    rows = packed.reshape(columns, -1)
    codes = np.stack([rows & 15, rows >> 4], -1).reshape(columns, -1)[:, :count]
    padded = np.pad(codes, ((0, -columns % panel), (0, -count % NIBBLES))).astype(np.uint32)
    nibbles = padded.reshape(-1, MOST_SUMS, padded.shape[1] // NIBBLES, NIBBLES)
    shifts = np.arange(NIBBLES, dtype=np.uint32) * 4
    words = (nibbles << shifts).sum(-1, dtype=np.uint32)
    return np.asarray(words.transpose(0, 2, 1).reshape(-1))
