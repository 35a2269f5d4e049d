"""Copies that transpose planes: elements contiguous along one dim are written along another.

Blocks of four by four 32-bit elements are transposed in registers. If a side has two or three
elements, vectors of four exceed it; the next vector overwrites the surplus.

The C functions take pointers to the element type; only vectors, which ``may_alias``, read elements
as floats. No scalar is accessed as another type: compilers may assume that a store of a float
changes no integer, and move loads of integers across it.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.nest import Access, collapse, index
from smelt.native.kernels.vector import PRELUDE, TRANSPOSE_4X4
from smelt.program.run_sizes import Size, is_empty, same

FEWEST = 16
"""The fewest elements of a plane for which a call of the function pays."""

PLANE = """static NO_INLINE void transpose_@t_plane(const @t *restrict from, ptrdiff_t step,
    @t *restrict to, ptrdiff_t pitch, ptrdiff_t rows, ptrdiff_t columns)
{
#if LANES > 1
    const ptrdiff_t tall = rows - rows % 4, wide = columns - columns % 4;
    for (ptrdiff_t first = 0; first < tall; first += 16) {
        const ptrdiff_t end = tall - first < 16 ? tall : first + 16;
        for (ptrdiff_t c = 0; c < wide; c += 4)
            for (ptrdiff_t r = first; r < end; r += 4)
                transpose_4x4((const float *)(from + r * step + c), step,
                    (float *)(to + c * pitch + r), pitch);
    }
#else
    const ptrdiff_t tall = 0, wide = 0;
#endif
    for (ptrdiff_t c = wide; c < columns; ++c)
        for (ptrdiff_t r = 0; r < tall; ++r)
            to[c * pitch + r] = from[r * step + c];
    for (ptrdiff_t r = tall; r < rows; ++r)
        for (ptrdiff_t c = 0; c < columns; ++c)
            to[c * pitch + r] = from[r * step + c];
}
"""

FEW_ROWS = """static NO_INLINE void transpose_FEW_@t_rows(const @t *restrict from, ptrdiff_t step,
    @t *restrict to, ptrdiff_t pitch, ptrdiff_t columns)
{
    ptrdiff_t c = 0;
#if LANES > 1
    for (; c + 8 <= columns; c += 4) {
        const four r0 = *(const four *)(from + c), r1 = *(const four *)(from + step + c);
        const four r2 = *(const four *)(from + LAST * step + c);
        const four low0 = MIXED(r0, r1, 0, 4, 1, 5), high0 = MIXED(r0, r1, 2, 6, 3, 7);
        const four low1 = MIXED(r2, r2, 0, 4, 1, 5), high1 = MIXED(r2, r2, 2, 6, 3, 7);
        *(four *)(to + c * pitch) = MIXED(low0, low1, 0, 1, 4, 5);
        *(four *)(to + (c + 1) * pitch) = MIXED(low0, low1, 2, 3, 6, 7);
        *(four *)(to + (c + 2) * pitch) = MIXED(high0, high1, 0, 1, 4, 5);
        *(four *)(to + (c + 3) * pitch) = MIXED(high0, high1, 2, 3, 6, 7);
    }
#endif
    for (; c < columns; ++c)
        for (ptrdiff_t r = 0; r < FEW; ++r)
            to[c * pitch + r] = from[r * step + c];
}
"""
"""C for two or three rows, whose elements are written contiguously."""

FEW_COLUMNS = """static NO_INLINE void transpose_FEW_@t_columns(const @t *restrict from,
    ptrdiff_t step, @t *restrict to, ptrdiff_t pitch, ptrdiff_t rows)
{
    ptrdiff_t r = 0;
#if LANES > 1
    for (; r + 8 <= rows; r += 4) {
        const four r0 = *(const four *)(from + r * step);
        const four r1 = *(const four *)(from + (r + 1) * step);
        const four r2 = *(const four *)(from + (r + 2) * step);
        const four r3 = *(const four *)(from + (r + 3) * step);
        const four low0 = MIXED(r0, r1, 0, 4, 1, 5), low1 = MIXED(r2, r3, 0, 4, 1, 5);
        *(four *)(to + r) = MIXED(low0, low1, 0, 1, 4, 5);
        *(four *)(to + pitch + r) = MIXED(low0, low1, 2, 3, 6, 7);
THIRD    }
#endif
    for (; r < rows; ++r)
        for (ptrdiff_t c = 0; c < FEW; ++c)
            to[c * pitch + r] = from[r * step + c];
}
"""
"""C for two or three columns, whose elements are read contiguously."""

_THIRD = """        {
            const four high0 = MIXED(r0, r1, 2, 6, 3, 7), high1 = MIXED(r2, r3, 2, 6, 3, 7);
            *(four *)(to + 2 * pitch + r) = MIXED(high0, high1, 0, 1, 4, 5);
        }
"""


def supports(cx: KernelContext, write: Access, read: Access) -> bool:
    """True if this file's kernels support the copy ``write[...] = read[...]`` over the output's
    shape.
    """
    sizes, (to, source) = collapse(cx.output_shape(), (write, read))
    return write.type.size == 4 and _read_loop(sizes, to, source) is not None


def _read_loop(sizes: tuple[int, ...], to: Access, source: Access) -> int | None:
    """Return the loop along which the copy reads contiguously, None if it is no transposition.

    The last loop writes contiguously.
    """
    if len(sizes) < 2 or is_empty(sizes) or not same(to.strides[-1], 1):
        return None
    step = source.strides[-1]
    if isinstance(step, int) and step < 2:
        return None
    for dim, stride in enumerate(source.strides[:-1]):
        area = sizes[dim] * sizes[-1]
        if same(stride, 1) and (isinstance(area, Size) or area >= FEWEST):
            return dim
    return None


def emit(cx: KernelContext, write: Access, read: Access) -> None:
    """Write a loop over planes with a call of the function that transposes one."""
    sizes, (to, source) = collapse(cx.output_shape(), (write, read))
    read_loop = _read_loop(sizes, to, source)
    assert read_loop is not None  # ``supports`` checked this
    others = [dim for dim in range(len(sizes) - 1) if dim != read_loop]
    names = [f"i{dim}" for dim in others]
    first = index([source.strides[dim] for dim in others], names, source.offset)
    offset = index([to.strides[dim] for dim in others], names, to.offset)
    rows, columns = sizes[-1], sizes[read_loop]
    step, pitch = source.strides[-1], to.strides[read_loop]
    type_ = read.type.name
    arguments = f"{source.array} + {first}, {step}, {to.array} + {offset}, {pitch}"
    cx.call("LANES", PRELUDE)
    counts = [sizes[dim] for dim in others]
    with cx.body.loops(names, counts, cx.body.widest(counts)):
        if _is_few(rows) and same(pitch, rows):
            text = FEW_ROWS.replace("FEW", str(rows)).replace("LAST", str(rows - 1))
            name, sizes = f"transpose_{rows}_{type_}_rows", (columns,)
        elif _is_few(columns) and same(step, columns):
            text = FEW_COLUMNS.replace("THIRD", _THIRD if columns == 3 else "")
            text = text.replace("FEW", str(columns))
            name, sizes = f"transpose_{columns}_{type_}_columns", (rows,)
        else:
            cx.call("transpose_4x4", TRANSPOSE_4X4)
            text, name, sizes = PLANE, f"transpose_{type_}_plane", (rows, columns)
        cx.call(name, text.replace("@t", type_))
        cx.body.line(f"{name}({arguments}, {', '.join(map(str, sizes))});")


def _is_few(size: int) -> bool:
    """True if the size is two or three in all runs."""
    return same(size, 2) or same(size, 3)
