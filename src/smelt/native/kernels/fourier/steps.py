"""C functions that transform blocks of rows, or one row by two factors, and their tables."""

from __future__ import annotations

from string import Template

import numpy as np

from smelt.native.kernels.fourier.block_transpose import transpose_rows
from smelt.native.kernels.fourier.codelets import LANES_APART, step
from smelt.native.kernels.fourier.plan import factors, half_twiddles, twiddles
from smelt.native.kernels.kernel import KernelContext
from smelt.native.types import CType

HALVES = """/* Transform $a * $b elements as a matrix: columns, twiddle factors, rows. */
static void $name($t *restrict x, $t *restrict y, $t *restrict lanes,
    const $t *wa, const $t *between, const $t *wb, ptrdiff_t apart)
{
    $t *const other = lanes + $room;
    for (ptrdiff_t j = 0; j < $b; j += $lanes) {
        const ptrdiff_t count = $b - j < $lanes ? $b - j : $lanes;
        for (ptrdiff_t i = 0; i < $a; ++i) {
            const $t *const from = x + i * $b + j;
            $t *const to = lanes + i * $block;
            if (count == $lanes) {
                LANES_APART
                for (ptrdiff_t l = 0; l < $lanes; ++l) {
                    to[l] = from[l];
                    to[$lanes + l] = from[apart + l];
                }
                continue;
            }
            LANES_APART
            for (ptrdiff_t l = 0; l < count; ++l) {
                to[l] = from[l];
                to[$lanes + l] = from[apart + l];
            }
        }
        const $t *const done = $first(lanes, other, wa);
        for (ptrdiff_t i = 0; i < $a; ++i) {
            const $t *const from = done + i * $block;
            const $t *const c = between + 2 * i * $b + j, *const s = c + $b;
            $t *const to = x + i * $b + j;
            LANES_APART
            for (ptrdiff_t l = 0; l < count; ++l) {
                to[l] = from[l] * c[l] - from[$lanes + l] * s[l];
                to[apart + l] = from[l] * s[l] + from[$lanes + l] * c[l];
            }
        }
    }
    for (ptrdiff_t i = 0; i < $a; i += $lanes) {
        const ptrdiff_t count = $a - i < $lanes ? $a - i : $lanes;
        $transpose(x + i * $b, $b, lanes, $block, count, $b);
        $transpose(x + apart + i * $b, $b, lanes + $lanes, $block, count, $b);
        const $t *const done = $second(lanes, other, wb);
        for (ptrdiff_t j = 0; j < $b; ++j) {
            const $t *const from = done + j * $block;
            $t *const to = y + j * $a + i;
            if (count == $lanes) {
                LANES_APART
                for (ptrdiff_t l = 0; l < $lanes; ++l) {
                    to[l] = from[l];
                    to[apart + l] = from[$lanes + l];
                }
                continue;
            }
            LANES_APART
            for (ptrdiff_t l = 0; l < count; ++l) {
                to[l] = from[l];
                to[apart + l] = from[$lanes + l];
            }
        }
    }
}
"""


def in_steps(cx: KernelContext, type_: CType, lanes: int, length: int, sign: int) -> str:
    """Return the name of a function of ``(x, y, w)`` that transforms blocks of rows.

    Each step writes from one array to the other; the function returns the array with the result.

    ```
    static float *fourier_16_float_forth(float *x, float *y, const float *w)
    {
        fourier_step_4_float_forth(x, y, w, 4, 1);
        { float *t = x; x = y; y = t; }
    ```
    """
    cx.call("LANES_APART", LANES_APART)
    lines, remaining, done = "", length, 1
    for radix in factors(length):
        remaining //= radix
        name, text = step(radix, type_, lanes, sign)
        cx.call(name, text)
        lines += f"    {name}(x, y, w, {remaining}, {done});\n"
        lines += f"    {{ {type_.name} *const t = x; x = y; y = t; }}\n"
        if remaining > 1:
            lines += f"    w += {2 * (radix - 1) * remaining};\n"
        done *= radix
    name = f"fourier_{length}_{type_.name}_{'back' if sign > 0 else 'forth'}"
    head = f"static {type_.name} *{name}({type_.name} *x, {type_.name} *y, const {type_.name} *w)\n"
    return cx.call(name, head + "{\n    (void)y, (void)w;\n" + lines + "    return x;\n}\n")


def in_halves(
    cx: KernelContext, type_: CType, lanes: int, halves: tuple[int, int], sign: int
) -> tuple[str, str]:
    """Return the name of a function of ``(x, y, lanes, tables, apart)``, and the tables as
    arguments.

    The function transforms one row of ``first * second`` elements from x to y, and overwrites x.
    """
    first, second = halves
    name = f"fourier_{first}_by_{second}_{type_.name}_{'back' if sign > 0 else 'forth'}"
    fields = {
        "name": name,
        "t": type_.name,
        "a": first,
        "b": second,
        "lanes": lanes,
        "block": 2 * lanes,
        "room": 2 * lanes * max(first, second),
        "first": in_steps(cx, type_, lanes, first, sign),
        "second": in_steps(cx, type_, lanes, second, sign),
        "transpose": transpose_rows(cx, type_),
    }
    cx.call(name, Template(HALVES).substitute(fields))
    numpy_type = np.float32 if type_.size == 4 else np.float64
    tables = (twiddles(first, sign), half_twiddles(first, second, sign), twiddles(second, sign))
    return name, ", ".join(
        cx.constant(table.reshape(-1).astype(numpy_type), type_) for table in tables
    )
