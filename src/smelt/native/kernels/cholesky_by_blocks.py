"""Cholesky factors of one matrix, some columns at a time: products by BLAS, the rest by rows.

OpenBLAS's ``potrf`` takes 170 us for 200 x 200 floats and 220 us for doubles, blocks 102 and 154 us
(one core of a Xeon with AVX-512).
"""

from __future__ import annotations

from smelt.native.kernels.blas import pointer
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.program.storage import Needs

COLUMNS = 16
"""The columns of a block."""

FEWEST = 48
"""The fewest rows for which blocks are faster than ``potrf``."""

TEXT = """static int NAME(const T *restrict a, T *restrict l, T *restrict t, ptrdiff_t n, int lower)
{
    const ptrdiff_t down = lower ? n : 1;
    memset(l, 0, sizeof(T) * (size_t)(n * n));
    for (ptrdiff_t first = 0; first < n; first += BLOCK) {
        const ptrdiff_t rows = n - first, count = rows < BLOCK ? rows : BLOCK;
        const ptrdiff_t corner = first * (n + 1);
        if (lower)
            for (ptrdiff_t i = 0; i < rows; ++i)
                for (ptrdiff_t p = 0; p < count; ++p)
                    t[p * rows + i] = a[corner + i * n + p];
        else
            for (ptrdiff_t p = 0; p < count; ++p)
                memcpy(t + p * rows, a + corner + p * n, sizeof(T) * (size_t)rows);
        if (first)
            GEMM(101, lower ? 111 : 112, lower ? 112 : 111, (int)count, (int)rows, (int)first, -1,
                l + first * down, (int)n, l + first * down, (int)n, 1, t, (int)rows);
        for (ptrdiff_t p = 0; p < count; ++p) {
            T *restrict const row = t + p * rows;
            for (ptrdiff_t k = 0; k < p; ++k) {
                const T *restrict const other = t + k * rows;
                const T factor = other[p];
                for (ptrdiff_t i = p; i < rows; ++i)
                    row[i] -= factor * other[i];
            }
            if (!(row[p] > 0))
                return 1;
            const T root = ROOT(row[p]), scale = 1 / root;
            row[p] = root;
            for (ptrdiff_t i = p + 1; i < rows; ++i)
                row[i] *= scale;
        }
        if (lower)
            for (ptrdiff_t i = 0; i < rows; ++i)
                for (ptrdiff_t p = 0; p < (i + 1 < count ? i + 1 : count); ++p)
                    l[corner + i * n + p] = t[p * rows + i];
        else
            for (ptrdiff_t p = 0; p < count; ++p)
                memcpy(l + corner + p * n + p, t + p * rows + p, sizeof(T) * (size_t)(rows - p));
    }
    return 0;
}
"""
"""C that writes the factor ``l`` of ``a``, both n x n: a lower or an upper triangle, and zeros.

``t`` holds the columns of a block as rows. They lose their products with the columns before, then
with each other. Returns 1 if a pivot is not positive."""


def needs(instance: Instance) -> Needs:
    """Return the scratch space: the columns of a block."""
    order = instance.shape(0)[-1]
    elements = COLUMNS * order if order >= FEWEST else 0
    return Needs(workspace=elements * instance.type(0).size)


def emit(cx: KernelContext, a: str, out: str, order: int) -> str:
    """Return the C expression that writes the factor of ``a`` to ``out``; 1 if there is none."""
    type_ = cx.type(0)
    text = TEXT.replace("GEMM", pointer(cx, f"{'d' if type_.name == 'double' else 's'}gemm"))
    for word, by in (("BLOCK", str(COLUMNS)), ("ROOT", f"sqrt{type_.f}"), ("T ", f"{type_.name} ")):
        text = text.replace(word, by)
    text = text.replace("sizeof(T)", f"sizeof({type_.name})")
    name = f"cholesky_by_blocks_{type_.name}"
    function = cx.call(name, text.replace("NAME", name))
    return f"{function}({a}, {out}, {cx.scratch(type_)}, {order}, {int(bool(cx.int('lower')))})"
