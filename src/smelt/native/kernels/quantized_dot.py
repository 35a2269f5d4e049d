"""QLinearMatMul and MatMulInteger by a matrix: bytes in memory, 32-bit sums.

Four neighbors of a left row multiply four of a weight column (an int8 dot product, ``quads`` in
names). CPUs without that instruction multiply 16-bit integers (``halves``), as do all CPUs if the
weights minus their zero point do not fit int8.

Weights are packed in panels at compile time, or at run time for MatMulInteger. The left operand
keeps its zero point, whose contribution is subtracted from the initial sums. QLinearMatMul may have
a bias of its columns as ninth input.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized.computed_rhs import (
    is_computed,
    pack_computed,
    packed_bytes,
    refuse_computed,
)
from smelt.native.kernels.quantized.conv_micro_kernel import ROWS, VECTORS
from smelt.native.kernels.quantized.epilogue import SPARE, Epilogue, epilogue_minus_zero_point
from smelt.native.kernels.quantized.integer_vectors import MOST_SUMS
from smelt.native.kernels.quantized.matrix_micro_kernel import matrix_micro_kernel
from smelt.native.kernels.quantized.operands import (
    input_positions,
    refuse_operands,
    refuse_sums,
    weights_minus_zero_point,
)
from smelt.native.kernels.quantized.pixel_major import dot as pixel_major_dot
from smelt.native.kernels.register_blocks import machine, runtime_blocks
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import highest
from smelt.program.storage import Needs

FEW_ROWS = {1: 8, 2: 4}
"""The vectors of a tile with few rows, which has registers for more vectors."""


def _refuse(instance: Instance) -> str | None:
    """Return why the instruction is refused, None if it is supported."""
    if is_computed(instance):
        return refuse_computed(instance)
    reason = refuse_operands(instance)
    if reason:
        return reason
    positions = input_positions(instance)
    if len(instance.shape(positions.w)) != 2 or len(instance.shape(0)) < 1:
        return "weights that are not a matrix"
    if instance.shape(positions.w)[0] == 0:
        return "an inner dim of size 0"
    zero = instance.slot(positions.w_zero) if positions.w_zero >= 0 else None
    if zero is not None and len(zero.shape) > 1:
        return "zero points of rows of the weights"
    return refuse_sums(instance, weights_minus_zero_point(instance, 1), (0,))


def _quads(instance: Instance) -> int:
    """Return the number of groups of four rows of the right operand, the last one padded."""
    return -(-instance.shape(input_positions(instance).w)[0] // 4)


def _left_bytes(instance: Instance) -> int:
    """Return the bytes of ``ROWS`` rows of the left operand as 16-bit numbers."""
    return ROWS * 8 * _quads(instance)


def _needs(instance: Instance) -> Needs:
    """Return the scratch space of the left rows, the initial sums and a computed right operand."""
    if machine().pixel_major and not is_computed(instance):
        return Needs(workspace=pixel_major_dot.scratch_bytes(instance))
    columns = instance.shape(input_positions(instance).w)[1]
    right = 0
    if is_computed(instance):
        right = packed_bytes(instance, _vectors(_row_count(instance), columns))
    return Needs(workspace=_left_bytes(instance) + 4 * (columns + SPARE) + right)


def _row_count(instance: Instance) -> int:
    """Return the number of rows of the left operand: all its dims but the last one."""
    return math.prod(instance.shape(0)[:-1])


def _vectors(rows: int, columns: int) -> int:
    """Return the vectors of a tile: an even number, as many as there are columns for."""
    most = FEW_ROWS.get(highest(rows), VECTORS)
    return min(most, 2 * -(-columns // (2 * MOST_SUMS)))


@kernel(
    "QLinearMatMul",
    "MatMulInteger",
    kinds=frozenset({"int"}),
    needs=_needs,
    refuse=_refuse,
    shared=True,
)
def quantized_dot(cx: KernelContext) -> None:
    """Write six rows at a time, and for them all panels of columns."""
    if machine().pixel_major and not is_computed(cx):
        pixel_major_dot.emit(cx)
        return
    output, body, (depth, columns) = cx.output(), cx.body, cx.shape(input_positions(cx).w)
    rows = output.size // columns if columns else 0
    if highest(rows) == 0:
        return
    vectors = _vectors(rows, columns)
    flip = 128 if cx.input(0).type.signed else 0
    packed, is_int16, epilogue = _right(cx, vectors, flip)
    shards_columns = highest(rows) < 2 * ROWS * body.parts
    row_loop, column_loop = body.loop, body.shared_loop
    if not shards_columns:
        row_loop, column_loop = column_loop, row_loop
    for part in runtime_blocks(rows, ROWS):
        tile = matrix_micro_kernel(cx, part.length, is_int16, epilogue, vectors)
        with row_loop("i", part.end, part.first, part.length):
            left = _emit_left(cx, part.length, depth, flip, is_int16)
            with column_loop("j", columns, step=f"{vectors} * SUMS"):
                panel = MOST_SUMS * vectors
                column_in_panel = f"j % {panel} * {2 if is_int16 else 4}"
                rhs_panel = f"{packed} + j / {panel} * {4 * panel * _quads(cx)} + {column_in_panel}"
                body.line(f"const ptrdiff_t left = {columns} - j;")
                out = f"{output.name} + i * {columns} + j"
                calls = [
                    (name, f"{arguments}, {rhs_panel}")
                    for name, arguments in zip(tile, left, strict=True)
                ]
                _emit_tile(cx, calls, epilogue, out, columns, (part.length, vectors))


def _right(cx: KernelContext, vectors: int, flip: int) -> tuple[str, bool, Epilogue]:
    """Return the packed right operand, whether its elements have 16 bits, and the epilogue."""
    scratch = cx.scratch(C_TYPES[ir.DataType.UINT8])
    start = f"{scratch} + {_left_bytes(cx)}"
    if is_computed(cx):
        after = f"{start} + {4 * (cx.shape(input_positions(cx).w)[1] + SPARE)}"
        packed, epilogue = pack_computed(cx, vectors, flip, start, after)
        return packed, False, epilogue
    weights = weights_minus_zero_point(cx, 1)
    is_int16 = weights.dtype != np.int8
    type_ = C_TYPES[ir.DataType.INT16 if is_int16 else ir.DataType.INT8]
    packed = cx.constant(pack(weights, MOST_SUMS * vectors), type_)
    sums = weights.astype(np.int64).sum(0)
    return packed, is_int16, epilogue_minus_zero_point(cx, sums, flip, start)


def _emit_left(
    cx: KernelContext, rows: int, depth: int, flip: int, is_int16: bool
) -> tuple[str, str]:
    """Declare ``rows`` rows from ``i`` on, and return the arguments of both micro-kernels.

    The micro-kernel of int8 dot products reads bytes, the other one 16-bit numbers, even and odd
    elements apart (``halved``). Unsigned bytes in whole groups of four are read in place.
    """
    source, body, quads = cx.input(0), cx.body, _quads(cx)
    in_place = flip == 0 and depth % 4 == 0
    body.line(f"const unsigned char *from = (const unsigned char *){source.name} + i * {depth};")
    if not is_int16:
        with body.block("if (HAS_QUADS)"):
            if not in_place:
                with body.loop("m", rows):
                    to = f"scratch + m * {4 * quads}"
                    body.line(f"flip_row(from + m * {depth}, {depth}, {flip}, {to});")
    body.line("int16_t *halved = (int16_t *)(void *)scratch;")
    with body.block("" if is_int16 else "if (!HAS_QUADS)"), body.loop("m", rows):
        body.line(f"halve_row(from + m * {depth}, {depth}, {flip}, halved + m * {4 * quads});")
    int8_source = "from" if in_place else "scratch"
    return f"{quads}, {int8_source}, {4 * quads}", f"{quads}, halved, {4 * quads}"


def _emit_tile(
    cx: KernelContext,
    calls: list[tuple[str, str]],
    epilogue: Epilogue,
    out: str,
    columns: int,
    size: tuple[int, int],
) -> None:
    """Write the call for a tile of rows by vectors; columns beyond the last one are not stored.

    ```
    wide[v] = left - to[v] < SUMS ? left - to[v] : SUMS;
    if (HAS_QUADS)
        rows_6x2_bytes_whole(1, from, 4, p0 + ..., p1 + j, p2 + j, last, y0 + ..., 24, to, wide);
    else
        rows_6x2_bytes_halves(1, halved, 4, ...);
    ```
    """
    body, (rows, vectors) = cx.body, size
    if epilogue.is_bytes:
        offsets = ", ".join(f"{vector} * SUMS" for vector in range(vectors))
        body.line(f"const ptrdiff_t to[] = {{ {offsets} }};")
        body.line(f"ptrdiff_t wide[{vectors}];")
        with body.loop("v", vectors):
            body.line("const ptrdiff_t rest = left - to[v];")
            body.line("wide[v] = rest < SUMS ? rest : SUMS;")
        _emit_calls(cx, calls, epilogue.arguments("j", out, str(columns)))
        return
    body.line(f"int32_t results[{rows * vectors} * SUMS];")
    _emit_calls(cx, calls, f"{epilogue.bias} + j, results")
    with body.loop("m", rows), body.loop("v", vectors):
        body.line("const ptrdiff_t rest = left - v * SUMS;")
        sums = f"results + (m * {vectors} + v) * SUMS"
        to = f"{out} + m * {columns} + v * SUMS"
        with body.block("if (rest > 0)"):
            body.line("const ptrdiff_t few = rest < SUMS ? rest : SUMS;")
            epilogue.store(body, to, cx.output().type.name, sums, "few", "j + v * SUMS + e")


def _emit_calls(cx: KernelContext, calls: list[tuple[str, str]], ends: str) -> None:
    """Write a call of the int8 dot product where the CPU has it, else of the micro-kernel of
    halves.

    ```
    #if QUADS
    if (HAS_QUADS)
        dot_whole(…);
    else
    #endif
        dot_halves(…);
    ```
    """
    (int8_function, int8_arguments), (halves_function, halves_arguments) = calls
    if not int8_function:
        cx.body.line(f"{halves_function}({halves_arguments}, {ends});")
        return
    cx.body.line("#if QUADS")
    cx.body.line("if (HAS_QUADS)")
    cx.body.line(f"    {int8_function}({int8_arguments}, {ends});")
    cx.body.line("else")
    cx.body.line("#endif")
    cx.body.line(f"    {halves_function}({halves_arguments}, {ends});")


def pack(weights: np.ndarray, panel: int) -> np.ndarray:
    """Return the weights in panels of ``panel`` columns, padded with zeros, as a flat array.

    Four rows make a group. The order of the elements, from the outermost axis to the innermost:

    - int8: panel, group, column, row of the group
    - wider types: panel, group, even rows before odd rows, column, row
    """
    depth, columns = weights.shape
    padded = np.pad(weights, ((0, -depth % 4), (0, -columns % panel)))
    # Axes: group, half of the group, even or odd row, panel, column.
    quads = padded.reshape(-1, 2, 2, padded.shape[1] // panel, panel)
    order = (3, 0, 4, 1, 2) if weights.dtype == np.int8 else (3, 0, 2, 4, 1)
    return quads.transpose(order).reshape(-1)
