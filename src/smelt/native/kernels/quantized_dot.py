"""QLinearMatMul and MatMulInteger by a constant matrix: bytes in memory, sums of 32 bits.

Rows of the left side, as 16 bits less the zero point, are pairs of a tile; columns of the weights,
laid out in panels and widened as they are read, are its vectors. QLinearMatMul may have a bias of
its columns as a ninth input here.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.even_parts import even_parts
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext, kernel
from smelt.native.kernels.quantized.finish import Finish, finish_of
from smelt.native.kernels.quantized.lanes import MOST_SUMS
from smelt.native.kernels.quantized.operands import (
    constant,
    less_zero_point,
    places_of,
    refuse_operands,
    refuse_sums,
    zero_text,
)
from smelt.native.kernels.quantized.tile import ROWS, VECTORS, matrix_tile
from smelt.native.types import C_TYPES
from smelt.program.run_sizes import highest
from smelt.program.storage import Needs

FEW_ROWS, FEW_ROWS_VECTORS = 2, 4
"""So few rows are multiplied with more vectors at a time, which need not be loaded for others."""


def _refuse(instance: Instance) -> str | None:
    reason = refuse_operands(instance)
    if reason:
        return reason
    place = places_of(instance)
    if len(instance.shape(place.w)) != 2 or len(instance.shape(0)) < 1:
        return "weights that are no matrix"
    if instance.shape(place.w)[0] == 0:
        return "no products to sum"
    zero = instance.slot(place.w_zero) if place.w_zero >= 0 else None
    if zero is not None and len(zero.shape) > 1:
        return "zero points of rows of the weights"
    return refuse_sums(less_zero_point(instance, 1), constant(instance, place.bias), (0,))


def _pairs(instance: Instance) -> int:
    return -(-instance.shape(places_of(instance).w)[0] // 2)


def _needs(instance: Instance) -> Needs:
    return Needs(workspace=2 * ROWS * 2 * _pairs(instance))


@kernel(
    "QLinearMatMul",
    "MatMulInteger",
    kinds=frozenset({"int"}),
    needs=_needs,
    refuse=_refuse,
    shared=True,
)
def quantized_dot(cx: KernelContext) -> None:
    """Six rows at a time, and for them all panels of columns."""
    x, y, body = cx.input(0), cx.output(), cx.body
    weights, pairs = less_zero_point(cx, 1), _pairs(cx)
    depth, columns = weights.shape
    rows = y.size // columns if columns else 0
    if rows == 0:
        return
    zero = zero_text(cx)
    wide = weights.dtype != np.int8
    vectors = FEW_ROWS_VECTORS if highest(rows) <= FEW_ROWS else VECTORS
    type_ = C_TYPES[ir.DataType.INT16 if wide else ir.DataType.INT8]
    packed = cx.constant(_pack(weights, MOST_SUMS * vectors), type_)
    finish = finish_of(cx, columns)
    scratch = cx.scratch(C_TYPES[ir.DataType.INT16])
    by_column = highest(rows) < 2 * ROWS * body.parts
    row_loop, column_loop = body.loop, body.shared_loop
    if not by_column:
        row_loop, column_loop = column_loop, row_loop
    body.line(f"const int16_t zero = (int16_t)({zero});")
    for part in even_parts(rows, ROWS):
        tile = matrix_tile(cx, part.length, wide, finish.is_bytes, vectors)
        with row_loop("i", part.first + part.length * part.count, part.first, part.length):
            body.line(f"const {x.type.name} *from = {x.name} + i * {depth};")
            with body.loop("m", part.length):
                with body.loop("k", depth):
                    at = f"m * {2 * pairs} + k"
                    body.line(f"{scratch}[{at}] = (int16_t)(from[m * {depth} + k] - zero);")
                if depth % 2:
                    body.line(f"{scratch}[m * {2 * pairs} + {depth}] = 0;")
            with column_loop("j", columns, step=f"{vectors} * SUMS"):
                panel = MOST_SUMS * vectors
                b = f"{packed} + j / {panel} * {2 * panel * pairs} + j % {panel} * 2"
                given = f"{pairs}, {scratch}, {2 * pairs}, {b}, {2 * panel}"
                body.line(f"const ptrdiff_t left = {columns} - j;")
                out = f"{y.name} + i * {columns} + j"
                _emit_tile(cx, (tile, given), finish, out, columns, (part.length, vectors))


def _emit_tile(
    cx: KernelContext,
    tile: tuple[str, str],
    finish: Finish,
    out: str,
    columns: int,
    size: tuple[int, int],
) -> None:
    """A call of a tile of rows and vectors, of whose columns some may be beyond the last."""
    (name, given), body, (rows, vectors) = tile, cx.body, size
    if finish.is_bytes:
        places = ", ".join(f"{v} * SUMS" for v in range(vectors))
        body.line(f"const ptrdiff_t to[] = {{ {places} }};")
        body.line(f"ptrdiff_t wide[{vectors}];")
        with body.loop("v", vectors):
            body.line("const ptrdiff_t rest = left - to[v];")
            body.line("wide[v] = rest < SUMS ? rest : SUMS;")
        body.line(f"{name}({given}, {finish.arguments('j', out, str(columns))});")
        return
    body.line(f"int32_t results[{rows * vectors} * SUMS];")
    body.line(f"{name}({given}, results);")
    with body.loop("m", rows), body.loop("v", vectors):
        body.line("const ptrdiff_t rest = left - v * SUMS;")
        body.line("if (rest > 0)")
        sums = f"results + (m * {vectors} + v) * SUMS"
        count = "(size_t)(rest < SUMS ? rest : SUMS)"
        to = f"{out} + m * {columns} + v * SUMS"
        body.line(f"    memcpy({to}, {sums}, {count} * sizeof(int32_t));")


def _pack(weights: np.ndarray, panel: int) -> np.ndarray:
    """Panels of columns; in each, by pair of rows, column, row of the pair."""
    depth, columns = weights.shape
    even = np.pad(weights, ((0, depth % 2), (0, -columns % panel)))
    return even.reshape(-1, 2, even.shape[1] // panel, panel).transpose(2, 0, 3, 1).reshape(-1)
