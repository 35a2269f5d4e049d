"""Softmax and LogSoftmax of rows shorter than a vector: one row per lane."""

from __future__ import annotations

from smelt.native.kernels.exponential import vector_exponential
from smelt.native.kernels.kernel import KernelContext
from smelt.native.types import CType
from smelt.program.run_sizes import Dim

FEWEST = 16
"""The fewest elements of rows that are computed one at a time in vectors."""

CHUNK = 64
"""The rows that one call computes."""

_ROWS = """#if LANES >= 8
static NO_INLINE void NAME(const float *x, float *y, ptrdiff_t rows)
{
    float t[COUNT * LANES] = { 0 };
    for (ptrdiff_t r = 0; r < rows; r += LANES, x += COUNT * LANES, y += COUNT * LANES) {
        const ptrdiff_t m = rows - r < LANES ? rows - r : LANES;
        for (ptrdiff_t l = 0; l < m; ++l)
            for (ptrdiff_t j = 0; j < COUNT; ++j)
                t[j * LANES + l] = x[l * COUNT + j];
        vec top = *(const vec *)t, sum = { 0 };
        for (ptrdiff_t j = 1; j < COUNT; ++j)
            top = LARGER(*(const vec *)(t + j * LANES), top);
BODY        for (ptrdiff_t l = 0; l < m; ++l)
            for (ptrdiff_t j = 0; j < COUNT; ++j)
                y[l * COUNT + j] = t[j * LANES + l];
    }
}
#endif
"""
"""C for rows. A NaN after the first element is not found by the maximum, but makes the sum NaN."""

_SHARES = """        for (ptrdiff_t j = 0; j < COUNT; ++j) {
            const vec e = vec_exp(*(const vec *)(t + j * LANES) - top);
            *(vec *)(t + j * LANES) = e;
            sum += e;
        }
        sum = 1.0f / sum;
        for (ptrdiff_t j = 0; j < COUNT; ++j)
            *(vec *)(t + j * LANES) *= sum;
"""

_LOGARITHMS = """        for (ptrdiff_t j = 0; j < COUNT; ++j)
            sum += vec_exp(*(const vec *)(t + j * LANES) - top);
        float less[LANES];
        *(vec *)less = sum;
        for (ptrdiff_t l = 0; l < LANES; ++l)
            less[l] = lane_log(less[l]);
        for (ptrdiff_t j = 0; j < COUNT; ++j)
            *(vec *)(t + j * LANES) = *(const vec *)(t + j * LANES) - top - *(const vec *)less;
"""


def supports(type_: CType, count: Dim) -> bool:
    """True if this file's kernels support the instruction: float32 in rows of a few elements."""
    return type_.name == "float" and isinstance(count, int) and 1 < count < FEWEST


def emit(cx: KernelContext, outer: int, count: int) -> None:
    """Write the calls for all rows, for vectors of eight lanes or more."""
    body, source, target = cx.body, cx.input(0), cx.output()
    is_log = cx.instruction.op == "LogSoftmax"
    vector_exponential(cx)
    name = f"{'log_' if is_log else ''}softmax_of_{count}"
    text = _ROWS.replace("BODY", _LOGARITHMS if is_log else _SHARES).replace("NAME", name)
    cx.call(name, text.replace("COUNT", str(count)))
    with body.shared_loop("o", outer, step=CHUNK):
        at = f"{source.name} + o * {count}, {target.name} + o * {count}"
        body.line(f"{name}({at}, {outer} - o < {CHUNK} ? {outer} - o : {CHUNK});")
