"""Products of bytes by a matrix: rows of the left side are the pixels, columns the filters."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.epilogue import epilogue_minus_zero_point
from smelt.native.kernels.quantized.operands import (
    input_positions,
    is_zero_computed,
    weights_minus_zero_point,
)
from smelt.native.kernels.quantized.pixel_major.c_text import header
from smelt.native.kernels.quantized.pixel_major.ending import Ending, declare_ending, row_function
from smelt.native.kernels.quantized.pixel_major.weights import (
    TOGETHER,
    block_size,
    blocks_of,
    constant_pairs,
    fits_two_columns_a_word,
    two_columns_a_word,
)
from smelt.native.kernels.quantized.tables import int_table
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import Size, highest

BAND_BYTES = 4096
"""The approximate bytes of the rows that are copied as 16-bit integers at a time."""


def _depth(instance: Instance) -> int:
    """Return the size of the summed axis."""
    return instance.shape(input_positions(instance).w)[0]


def _rows(instance: Instance) -> int:
    """Return the number of rows of the left operand: all its dims but the last one."""
    return math.prod(instance.shape(0)[:-1])


def _band(instance: Instance) -> int:
    """Return the rows of a band."""
    most = max(2, BAND_BYTES // (2 * _pitch(instance)))
    rows = highest(_rows(instance))
    return -(-rows // -(-rows // most)) if rows else 1


def _pitch(instance: Instance) -> int:
    """Return the elements of a row as 16-bit integers: whole pairs."""
    return _depth(instance) + _depth(instance) % 2


def _is_vector(instance: Instance, weights: np.ndarray) -> bool:
    """True if there is one row, which is read in place, and its sums are small enough."""
    rows = _rows(instance)
    return not isinstance(rows, Size) and rows == 1 and fits_two_columns_a_word(weights.T)


def scratch_bytes(instance: Instance) -> int:
    """Return the size of the scratch space: rows of the left side, a block of weights, sums."""
    columns = instance.shape(input_positions(instance).w)[1]
    weights = weights_minus_zero_point(instance, 1)
    sums = 4 * columns if is_zero_computed(instance) else 0
    if _is_vector(instance, weights):
        return sums
    return _sums_offset(instance, columns, weights.dtype == np.int8) + sums


def _sums_offset(instance: Instance, columns: int, is_int8: bool) -> int:
    """Return the offset in bytes of the initial sums."""
    together = TOGETHER if columns >= TOGETHER else 1
    block = block_size(1, _pitch(instance) // 2, together)
    return 2 * _band(instance) * _pitch(instance) + (2 * block if is_int8 else 0)


def emit(cx: KernelContext) -> None:
    """Write the product of one row, or a loop over bands of rows."""
    weights = weights_minus_zero_point(cx, 1)
    columns, is_int8 = weights.shape[1], weights.dtype == np.int8
    output = cx.output()
    rows = output.size // columns if columns else 0
    if highest(rows) == 0:
        return
    sums, is_vector = weights.astype(np.int64), _is_vector(cx, weights)
    scratch, start = "", ""
    if is_zero_computed(cx) or not is_vector:
        scratch = cx.scratch(C_TYPES[ir.DataType.INT16])
        offset = 0 if is_vector else _sums_offset(cx, columns, is_int8)
        start = f"{scratch} + {offset // 2}"
    epilogue = epilogue_minus_zero_point(cx, sums.sum(0), 0, start)
    ending = declare_ending(cx, epilogue, np.abs(sums).sum(0))
    if is_vector:
        _emit_vector(cx, weights, ending)
    else:
        _emit_bands(cx, weights, ending, scratch, rows)


def _emit_vector(cx: KernelContext, weights: np.ndarray, ending: Ending) -> None:
    """Write the call that multiplies one row; shards compute ranges of four columns."""
    source, output, body = cx.input(0), cx.output(), cx.body
    depth, columns = weights.shape
    byte = "int8" if source.type.signed else "uint8"
    header(cx, "dot4", BYTE=byte)
    header(cx, "vector", NAME=ending.name, BYTE=byte, RESULT=ending.result)
    packed = cx.constant(two_columns_a_word(weights.T), C_TYPES[ir.DataType.INT32])
    step = max(TOGETHER, -(-columns // (TOGETHER * body.parts)) * TOGETHER)
    with body.shared_loop("j", columns, step=step):
        body.line(f"const ptrdiff_t n = {columns} - j < {step} ? {columns} - j : {step};")
        at = f"{packed} + j * {-(-depth // 4)}"
        body.line(
            f"vector_{ending.name}({source.name}, {depth}, n, {at}, &end, j, {output.name} + j);"
        )


def _emit_bands(
    cx: KernelContext, weights: np.ndarray, ending: Ending, scratch: str, rows: int
) -> None:
    """Write a loop over bands of rows, and in it over blocks of four columns.

    ```
    for (ptrdiff_t i = 0; i < 32; i += 16) {
        const ptrdiff_t n = 32 - i < 16 ? 32 - i : 16;
        widen_rows_int8(x0 + i * 64, n, 64, 64, scratch);
        for (ptrdiff_t j = 0; j < 64; j += 4) {
            widen_pairs(p0 + j * 64, 256, w);
            row_by_four_byte_int8_0(scratch, n, 64, starts, 1, 32, w, &end, j, y0 + ..., 1, 64);
    ```
    """
    source, output, body = cx.input(0), cx.output(), cx.body
    depth, columns = weights.shape
    pitch, band, is_int8 = _pitch(cx), _band(cx), weights.dtype == np.int8
    byte = "int8" if source.type.signed else "uint8"
    header(cx, "widen_rows", BYTE=byte)
    starts = int_table(cx, "starts", [0])
    packed = constant_pairs(cx, weights.T[None, :, None])
    shares_columns = highest(rows) < 2 * band * body.parts
    row_loop, column_loop = body.loop, body.shared_loop
    if not shares_columns:
        row_loop, column_loop = column_loop, row_loop
    with row_loop("i", rows, step=band):
        body.line(f"const ptrdiff_t rest = {rows} - i;")
        body.line(f"const ptrdiff_t n = rest < {band} ? rest : {band};")
        rows_at = f"{source.name} + i * {depth}"
        body.line(f"widen_rows_{byte}({rows_at}, n, {depth}, {pitch}, {scratch});")
        for part in blocks_of(columns):
            function = row_function(cx, ending, part.length, pitch // 2)
            size = block_size(1, pitch // 2, part.length)
            first = part.first * pitch
            with column_loop("j", part.end, part.first, part.length):
                at = f"{packed} + {first} + (j - {part.first}) / {part.length} * {size}"
                if is_int8:
                    header(cx, "widen")
                    body.line(f"int16_t *w = {scratch} + {band * pitch};")
                    body.line(f"widen_pairs({at}, {size}, w);")
                    at = "w"
                to = f"{output.name} + i * {columns} + j, 1, {columns}"
                ends = f"{starts}, 1, {pitch // 2}, {at}, &end, j, {to}"
                body.line(f"{function}({scratch}, n, {pitch}, {ends});")
