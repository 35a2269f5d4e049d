"""MatMulNBits with ``accuracy_level`` 4: rows of the left operand are rounded to int8 blocks.

A chunk of rows is rounded to scratch space. Then each few columns of weights are read once for all
rows of the chunk. Rows with an infinity or a NaN are multiplied as floats.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.block_dot import (
    Form,
    block_dot,
    block_dot_of_floats,
    rounded_blocks,
    tile_weights,
)
from smelt.native.kernels.quantized.operands import constant
from smelt.native.kernels.quantized.panel_codes import PANEL, panel_codes
from smelt.native.kernels.quantized.weight_blocks import BIAS, SCALES, ZEROS, Blocks
from smelt.native.types import C_TYPES
from smelt.operators.onnxruntime.microsoft.packed import unpacked
from smelt.program.run_sizes import highest
from smelt.program.storage import Needs

CHUNK = 256
"""The most rows that are rounded at a time."""

FEWEST_OF_TILES = 24
"""The fewest rows that are multiplied in tile registers, 32 at a time."""

TILE = 32
"""The rows and columns of a product in tile registers, and the multiple of its depth."""

ROWS = (6, 4, 2, 1)
"""The rows of micro-kernels."""

PANELS = 2
"""The panels of micro-kernels."""

_WIDTH = PANELS * PANEL


def rounded_needs(instance: Instance) -> Needs:
    """Return the scratch space of rounded rows, with a factor and a sum for each block.

    Where tile registers may be used, the same space holds the rows as bfloat16, and ``TILE``
    columns of weights.
    """
    blocks, chunk = Blocks.of(instance), min(CHUNK, highest(_rows(instance)))
    needed = chunk * (blocks.row + 8 * blocks.count)
    if _may_use_tiles(instance):
        needed = max(needed, 2 * blocks.row * (chunk + -chunk % TILE + TILE))
    return Needs(workspace=needed)


def _rows(instance: Instance) -> int:
    """Return the number of rows of the left operand."""
    return prod(instance.output_shape()[:-1])


def _may_use_tiles(instance: Instance) -> bool:
    """True if there may be enough rows for tile registers, of a depth that they take."""
    is_deep = Blocks.of(instance).row % TILE == 0
    return is_deep and highest(_rows(instance)) >= FEWEST_OF_TILES


def emit_rounded(cx: KernelContext) -> None:
    """Write a loop over chunks of rows and, in it, a loop over ``PANELS`` panels of columns.

    ```
    for (ptrdiff_t i = 0; i < rows; i += 256) {
        const ptrdiff_t n = rows - i < 256 ? rows - i : 256;
        int finite = 1;
        for (ptrdiff_t m = 0; m < n; ++m)
            finite = rounded_blocks(...) && finite;
        for (ptrdiff_t j = 0; j < columns; j += 32) {
    ```
    """
    body, blocks, source = cx.body, Blocks.of(cx), cx.input(0)
    rows = _rows(cx)
    chunk = min(CHUNK, highest(rows))
    scratch = cx.scratch(C_TYPES[ir.DataType.INT8])
    form, arguments = _weights(cx, blocks)
    body.line(f"float *const factors = (float *)(void *)({scratch} + {chunk * blocks.row});")
    body.line(f"int32_t *const of_blocks = (int32_t *)(factors + {chunk * blocks.count});")
    with body.loop("i", rows, 0, chunk):
        body.line(f"const ptrdiff_t n = {rows} - i < {chunk} ? {rows} - i : {chunk};")
        body.line("int finite = 1;")
        if _may_use_tiles(cx):
            _emit_tiles(cx, blocks, form, arguments, chunk)
        with body.loop("m", "n"):
            body.line(f"const float *row = {source.name} + (i + m) * {blocks.depth};")
            sizes = f"{blocks.depth}, {blocks.size}, {blocks.count}"
            each = f"m * {blocks.count}"
            to = f"{scratch} + m * {blocks.row}, factors + {each}, of_blocks + {each}"
            body.line(f"finite = {rounded_blocks(cx)}(row, {sizes}, {to}) && finite;")
        with body.shared_loop("j", blocks.columns, 0, _WIDTH):
            _emit_columns(cx, blocks, form, ", ".join(arguments))


def _emit_tiles(
    cx: KernelContext, blocks: Blocks, form: Form, arguments: list[str], chunk: int
) -> None:
    """Write the products of a chunk in tile registers, for CPUs that have them and enough rows.

    ```
    if (n >= 24 && has_tiles()) {
        for (ptrdiff_t m = 0; m < n; ++m)
            finite = short_floats(...) && finite;
        if (finite) {
            begin_tiles();
            for (ptrdiff_t j = 0; j < columns; j += 32) { ... }
            continue;
        }
        finite = 1;
    }
    ```
    """
    body, depth, row = cx.body, blocks.depth, blocks.row
    unpack, weights = tile_weights(cx, form), arguments[:-1]
    body.line("#if TILES")
    with body.block(f"if (n >= {FEWEST_OF_TILES} && has_tiles())"):
        body.line("uint16_t *const a = (uint16_t *)(void *)scratch;")
        body.line(f"uint16_t *const b = a + {(chunk + -chunk % TILE) * row};")
        with body.loop("m", "n"):
            x = f"{cx.input(0).name} + (i + m) * {depth}"
            body.line(f"finite = short_floats({x}, {depth}, {row}, a + m * {row}) && finite;")
        with body.block("if (finite)"):
            body.line("begin_tiles();")
            with body.shared_loop("j", blocks.columns, 0, _WIDTH):
                body.line(f"const ptrdiff_t left = {blocks.columns} - j;")
                for p, advance in enumerate(("", " + 16")):
                    of_panel = ", ".join(each.replace("j /", f"(j{advance}) /") for each in weights)
                    sizes = f"{blocks.count}, {blocks.size}"
                    body.line(f"{unpack}({sizes}, {of_panel}, b + {p * PANEL * row});")
                with body.loop("m", "n", 0, TILE):
                    body.line(f"const ptrdiff_t most = n - m < {TILE} ? n - m : {TILE};")
                    to = f"{cx.output().name} + (i + m) * {blocks.columns} + j"
                    count = f"left < {_WIDTH} ? left : {_WIDTH}"
                    what = f"{row}, a + m * {row}, b, {arguments[-1]}"
                    body.line(f"tile_dot({what}, most, {count}, {to}, {blocks.columns});")
            body.line('__asm__ volatile("tilerelease");')
            body.line("continue;")
        body.line("finite = 1;")
    body.line("#endif")


def _emit_columns(cx: KernelContext, blocks: Blocks, form: Form, arguments: str) -> None:
    """Write the products of ``n`` rows and the columns from ``j`` on, as many as exist.

    Results of the last columns go through ``last``, because micro-kernels write whole panels.
    """
    body, output = cx.body, cx.output()
    body.line(f"const ptrdiff_t left = {blocks.columns} - j;")
    body.line(f"float *const y = {output.name} + i * {blocks.columns} + j;")
    body.line(f"float last[{ROWS[0] * _WIDTH}];")
    with body.block("if (!finite)"), body.loop("m", "n"):
        any_ = block_dot_of_floats(cx, form)
        row = f"{cx.input(0).name} + (i + m) * {blocks.depth}, {blocks.depth}"
        count = f"left < {_WIDTH} ? left : {_WIDTH}"
        sizes = f"{blocks.count}, {blocks.size}"
        body.line(f"{any_}({row}, {count}, {sizes}, {arguments}, y + m * {blocks.columns});")
    with body.block("else for (ptrdiff_t m = 0; m < n;)"):
        for rows in ROWS:
            condition = f"if (n - m >= {rows})" if rows > 1 else ""
            if highest(_rows(cx)) < rows:
                continue
            name = block_dot(cx, form, rows, PANELS)
            with body.block(condition):
                _emit_call(cx, blocks, name, arguments, rows)
                body.line("continue;")


def _emit_call(cx: KernelContext, blocks: Blocks, name: str, arguments: str, rows: int) -> None:
    """Write the call of the micro-kernel ``name`` for ``rows`` rows from ``m`` on."""
    body = cx.body
    body.line(f"float *const to = left < {_WIDTH} ? last : y + m * {blocks.columns};")
    body.line(f"const ptrdiff_t pitch = left < {_WIDTH} ? {_WIDTH} : {blocks.columns};")
    each = f"m * {blocks.count}"
    a = f"scratch + m * {blocks.row}, factors + {each}, of_blocks + {each}"
    body.line(f"{name}({blocks.count}, {blocks.size}, {a}, {arguments}, to, pitch);")
    with body.block(f"if (left < {_WIDTH})"), body.loop("r", rows):
        size = "(size_t)left * sizeof(float)"
        body.line(f"memcpy(y + (m + r) * {blocks.columns}, last + r * {_WIDTH}, {size});")
    body.line(f"m += {rows};")


def _weights(cx: KernelContext, blocks: Blocks) -> tuple[Form, list[str]]:
    """Return the form of the weights, and the C arguments of those of the columns from ``j`` on.

    Scales that float16 can hold are stored in it.
    """
    codes, scales, zeros, bias = (constant(cx, i) for i in (1, SCALES, ZEROS, BIAS))
    assert codes is not None
    assert scales is not None
    with np.errstate(over="ignore"):
        halves = scales.astype(np.float16)
    has_halves = bool(np.isfinite(halves).all() and (halves.astype(np.float32) == scales).all())
    form = Form(blocks.bits, zeros is not None, has_halves)
    byte, float_ = C_TYPES[ir.DataType.UINT8], C_TYPES[ir.DataType.FLOAT]
    scale_type = C_TYPES[ir.DataType.UINT16] if has_halves else float_
    stored = halves.view(np.uint16) if has_halves else scales
    panels = codes if cx.is_trial else panel_codes(codes, blocks, _WIDTH)
    names = [cx.constant(panels, byte)]
    names.append(cx.constant(_by_panel(stored.reshape(blocks.columns, -1)), scale_type))
    panel = f"j / {PANEL} * {blocks.count * PANEL}"
    arguments = [
        f"{names[0]} + j / {PANEL} * {blocks.row * PANEL * blocks.bits // 8}",
        f"{names[1]} + {panel}",
    ]
    if zeros is not None:
        points = unpacked(zeros.reshape(blocks.columns, -1), blocks.bits, blocks.count)
        arguments.append(f"{cx.constant(_by_panel(points), byte)} + {panel}")
    start = np.zeros(blocks.columns, np.float32) if bias is None else bias.reshape(-1)
    start = np.pad(start, (0, -blocks.columns % _WIDTH))
    arguments.append(f"{cx.constant(start, float_)} + j")
    return form, arguments


def _by_panel(per_block: np.ndarray) -> np.ndarray:
    """Return ``per_block``, [columns, blocks], in the order panel, block, column."""
    columns, count = per_block.shape
    padded = np.pad(per_block, ((0, -columns % _WIDTH), (0, 0)))
    return np.ascontiguousarray(padded.reshape(-1, PANEL, count).transpose(0, 2, 1).reshape(-1))
