"""Products of int8 matrices whose right operand is computed: it is packed into panels in each run.

Its columns are summed, too. The initial sums are minus the sums of columns times the zero point of
the left operand.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.epilogue import SPARE, Epilogue
from smelt.native.kernels.quantized.integer_vectors import MOST_SUMS, declare
from smelt.native.kernels.quantized.operands import (
    BYTES,
    constant,
    input_positions,
    is_present,
    zero_text,
)

PACK = """static IF_CALLED void pack_quads(const int8_t *restrict from, ptrdiff_t depth,
    ptrdiff_t columns, ptrdiff_t panel, int8_t *restrict to)
{
    for (ptrdiff_t j = 0; j < columns; j += panel) {
        const ptrdiff_t wide = columns - j < panel ? columns - j : panel;
        for (ptrdiff_t k = 0; k < depth; k += 4, to += 4 * panel) {
            const int8_t *a = from + k * columns + j;
            if (k + 4 <= depth) {
                const int8_t *b = a + columns, *c = b + columns, *d = c + columns;
                for (ptrdiff_t e = 0; e < wide; ++e) {
                    to[4 * e] = a[e];
                    to[4 * e + 1] = b[e];
                    to[4 * e + 2] = c[e];
                    to[4 * e + 3] = d[e];
                }
            } else {
                for (ptrdiff_t e = 0; e < wide; ++e)
                    for (ptrdiff_t r = 0; r < 4; ++r)
                        to[4 * e + r] = (int8_t)(k + r < depth ? a[r * columns + e] : 0);
            }
            for (ptrdiff_t e = 4 * wide; e < 4 * panel; ++e)
                to[e] = 0;
        }
    }
}
static IF_CALLED void start_columns(const int8_t *restrict from, ptrdiff_t depth,
    ptrdiff_t columns, ptrdiff_t spare, uint32_t zero, int32_t *restrict start)
{
    for (ptrdiff_t j = 0; j < columns + spare; ++j)
        start[j] = 0;
    for (ptrdiff_t k = 0; k < depth; ++k)
        for (ptrdiff_t j = 0; j < columns; ++j)
            start[j] += from[k * columns + j];
    for (ptrdiff_t j = 0; j < columns; ++j)
        start[j] = (int32_t)(0u - (uint32_t)start[j] * zero);
}
"""
"""C functions that pack the right side, four rows by a panel of columns, padded with zeros, and
that compute the initial sums."""


def is_computed(instance: Instance) -> bool:
    """True if the right operand is not constant, so that each run packs it."""
    return constant(instance, input_positions(instance).w) is None


def refuse_computed(instance: Instance) -> str | None:
    """Return why a computed right operand is refused, None if it is supported."""
    positions = input_positions(instance)
    weights, zero = instance.slot(positions.w), constant(instance, positions.w_zero)
    if positions.scales is not None:
        return "weights that are not constant"
    if is_present(instance, positions.w_zero) and (zero is None or zero.any()):
        return "a zero point of weights that are not constant"
    left = instance.slot(0)
    if (
        left is None
        or left.dtype not in BYTES
        or weights is None
        or weights.dtype != ir.DataType.INT8
    ):
        return "computed weights of a type other than int8"
    sizes = [*left.shape, *weights.shape]
    if len(weights.shape) != 2 or len(left.shape) < 2 or not all(type(n) is int for n in sizes):
        return "computed weights that are not a matrix of known size"
    point = instance.slot(positions.x_zero)
    if point is not None and point.size != 1:
        return "several zero points of the left side"
    return None


def packed_bytes(instance: Instance, vectors: int) -> int:
    """Return the bytes of the packed right operand, padded to groups of four rows and to panels."""
    depth, columns = instance.shape(input_positions(instance).w)
    panel = max(1, MOST_SUMS * vectors)  # without columns, ``vectors`` is 0
    return 4 * -(-depth // 4) * panel * -(-columns // panel)


def pack_computed(
    cx: KernelContext, vectors: int, flip: int, start: str, packed: str
) -> tuple[str, Epilogue]:
    """Write the packing of the right operand to ``packed``, and the initial sums to ``start``.

    Both are in scratch space. Returns the name of the packed operand, and the epilogue. ``flip``
    was added to the left operand to make its bytes unsigned.
    """
    position = input_positions(cx).w
    depth, columns = cx.shape(position)
    declare(cx)
    cx.call("pack_quads", PACK)
    weights, body = cx.input(position).name, cx.body
    body.line(f"int8_t *const right = (int8_t *)({packed});")
    body.line(f"pack_quads({weights}, {depth}, {columns}, {MOST_SUMS * vectors}, right);")
    body.line(f"int32_t *const start = (int32_t *)(void *)({start});")
    zero = f"(uint32_t)({zero_text(cx)} + {flip})"
    body.line(f"start_columns({weights}, {depth}, {columns}, {SPARE}, {zero}, start);")
    return "right", Epilogue("start", "")
