"""The micro-kernel of products with 4-bit weights: a few rows by some vectors of columns."""

from __future__ import annotations

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.dot4 import declare
from smelt.native.kernels.quantized.integer_vectors import MOST_SUMS

NIBBLES = 8
"""The 4-bit codes of a word, the first in the lowest bits."""

ROW = """static IF_CALLED int padded_row(const float *restrict x, ptrdiff_t n, ptrdiff_t size,
    ptrdiff_t blocks, float *restrict to, float *restrict of_blocks)
{
    static const float place[] = { 1.0f, 0.0625f, 0.00390625f, 0.000244140625f,
        0.0000152587890625f, 0.00000095367431640625f, 0.000000059604644775390625f, 1.0f };
    float none = 0.0f;
    for (ptrdiff_t b = 0; b < blocks; ++b) {
        float sum = 0.0f;
        for (ptrdiff_t k = b * size; k < (b + 1) * size; ++k) {
            const float v = k < n ? x[k] : 0.0f;
            to[k] = v * place[k % 8];
            sum += v;
        }
        of_blocks[b] = sum;
        none += sum * 0.0f;
    }
    return none == 0.0f;
}
"""

NIBBLE = """#if SUMS > 1
#define NIBBLE(q, shift) REAL((sums)((unsigned_sums)(q) >> (shift) & 15))
#else
#define NIBBLE(q, shift) REAL((int32_t)((uint32_t)(q) >> (shift) & 15))
#endif
"""


def padded_row(cx: KernelContext) -> str:
    """Return the name of a function ``(x, n, size, blocks, to, of_blocks)`` that prepares a row.

    The function pads n floats with zeros to whole blocks of ``size``, sums each block, and returns
    whether the sums are finite. It divides each float by the power of 2 by which the place of its
    code in a word scales the code. The last code of a word is shifted down instead, because it
    includes the sign bit.
    """
    declare(cx)
    return cx.call("padded_row", ROW)


def int4_micro_kernel(
    cx: KernelContext, rows: int, vectors: int, zeros: bool, *, finite: bool
) -> str:
    """Return the name of a micro-kernel
    ``(blocks, size, a, of_blocks, w, scales, [zeros,] bias, results)``.

    ``size`` is the number of words of a block. Rows of ``a`` and of the sums ``of_blocks`` are
    contiguous, as are the panels of columns of codes ``w``, ``zeros`` and ``scales``. For
    ``finite`` rows the zero point is subtracted once per block, else once per code, because
    infinity minus infinity is NaN.
    """
    name = f"nibbles_{rows}x{vectors}" + ("_zeros" if zeros else "") + ("" if finite else "_any")
    out = Writer()
    out.line(f"static NO_INLINE void {name}(ptrdiff_t blocks, ptrdiff_t size,")
    out.line(
        "    const float *restrict a, const float *restrict of_blocks, const uint32_t *restrict w,"
    )
    zeros_parameter = "const uint32_t *restrict zeros, " if zeros else ""
    out.line(f"    const float *restrict scales, {zeros_parameter}const float *restrict bias,")
    out.line("    float *restrict results)")
    with out.block(""):
        out.line(f"const ptrdiff_t row = blocks * size * {NIBBLES};")
        out.line(
            f"const ptrdiff_t apart = blocks * size * {MOST_SUMS}, each = blocks * {MOST_SUMS};"
        )
        if zeros:
            rounded_up = f"(blocks + {NIBBLES - 1}) / {NIBBLES}"
            out.line(f"const ptrdiff_t points = {rounded_up} * {MOST_SUMS};")
        for vector in range(vectors):
            for row in range(rows):
                out.line(f"reals t{row}_{vector} = *(const reals *)(bias + {vector} * SUMS);")
        with out.block("for (ptrdiff_t b = 0; b < blocks; ++b)"):
            _load_zeros(out, vectors, zeros)
            _multiply(out, rows, vectors, finite)
            _add_scaled(out, rows, vectors, finite)
        for row in range(rows):
            for vector in range(vectors):
                out.line(
                    f"*(reals *)(results + {row * vectors + vector} * SUMS) = t{row}_{vector};"
                )
        out.line("(void)row;")
        if not finite:
            out.line("(void)of_blocks;")
    declare(cx)
    cx.call("NIBBLE", NIBBLE)
    return cx.call(name, out.text())


def _load_zeros(out: Writer, vectors: int, has_zeros: bool) -> None:
    """Write ``z``, the zero points of block ``b``, which are 8 if the weights bring none:

    ```
    const reals z0 = same_real(8.0f);
    ```

    The panel of ``MOST_SUMS`` columns that holds a vector begins ``points`` words after the panel
    before it. A word of a panel has one column's zero points of ``NIBBLES`` consecutive blocks:

    ```
    const reals z1 = NIBBLE(*(const sums *)(zeros + 1 * SUMS / 16 * points + 1 * SUMS % 16
        + b / 8 * 16), b % 8 * 4);
    ```
    """
    for vector in range(vectors):
        point = "same_real(8.0f)"
        if has_zeros:
            at = f"{vector} * SUMS / {MOST_SUMS} * points + {vector} * SUMS % {MOST_SUMS}"
            at += f" + b / {NIBBLES} * {MOST_SUMS}"
            point = f"NIBBLE(*(const sums *)(zeros + {at}), b % {NIBBLES} * 4)"
        out.line(f"const reals z{vector} = {point};")


def _add_scaled(out: Writer, rows: int, vectors: int, finite: bool) -> None:
    """Write the addition of a block's sums ``s``, times their scales ``f``, to the results ``t``.

    A panel has the scales of ``MOST_SUMS`` columns, block after block: ``each`` floats. A vector
    may be a part of a panel.

    ```
    const reals f0 = *(const reals *)(scales + 0 * SUMS / 16 * each + 0 * SUMS % 16 + b * 16);
    t0_0 += f0 * (s0_0 - z0 * same_real(of_blocks[0 * blocks + b]));
    ```
    """
    for v in range(vectors):
        at = f"{v} * SUMS / {MOST_SUMS} * each + {v} * SUMS % {MOST_SUMS} + b * {MOST_SUMS}"
        out.line(f"const reals f{v} = *(const reals *)(scales + {at});")
    for row in range(rows):
        for v in range(vectors):
            zero_part = f" - z{v} * same_real(of_blocks[{row} * blocks + b])" if finite else ""
            out.line(f"t{row}_{v} += f{v} * (s{row}_{v}{zero_part});")


def _multiply(out: Writer, rows: int, vectors: int, finite: bool) -> None:
    """Write the sums of a block: products of the left operand and the codes.

    ```
    for (ptrdiff_t k = 0; k < size; ++k) {
        const sums q0 = *(const sums *)(w + ...);
        const reals c0 = REAL(q0 & 240), a0 = same_real(a[0 * row + 1]);
        s0_0 += a0 * c0;
    ```
    """
    for row in range(rows):
        for vector in range(vectors):
            out.line(f"reals s{row}_{vector} = {{ 0 }};")
    with out.block("for (ptrdiff_t k = 0; k < size; ++k)"):
        for vector in range(vectors):
            at = f"{vector} * SUMS / {MOST_SUMS} * apart + {vector} * SUMS % {MOST_SUMS}"
            out.line(f"const sums q{vector} = *(const sums *)(w + {at});")
        for i in range(NIBBLES):
            with out.block(""):
                _add_products(out, rows, vectors, i, finite)
        out.line(f"a += {NIBBLES}, w += {MOST_SUMS};")


def _add_products(out: Writer, rows: int, vectors: int, i: int, finite: bool) -> None:
    """Write the products of code ``i`` of each word, added to the sums."""
    last = i == NIBBLES - 1
    for vector in range(vectors):
        code = f"NIBBLE(q{vector}, {4 * i})" if last else f"REAL(q{vector} & {15 << 4 * i})"
        minus_zero = "" if finite else f" - z{vector} * same_real({1 if last else 16**i}.0f)"
        out.line(f"const reals c{vector} = {code}{minus_zero};")
    for row in range(rows):
        out.line(f"const reals a{row} = same_real(a[{row} * row + {i}]);")
        for vector in range(vectors):
            out.line(f"s{row}_{vector} += a{row} * c{vector};")
