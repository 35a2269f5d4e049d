"""Quantization of contiguous elements by vectors; the caller's loop computes the last elements.

Compilers would vectorize such loops, but narrow the results in several steps.
"""

from __future__ import annotations

import hashlib

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.integer_vectors import declare
from smelt.native.kernels.quantized.operands import SIGNS

QUANTIZE = """static IF_CALLED ptrdiff_t quantize_run(const float *restrict x, ptrdiff_t n,
    float scale, const int32_t *last, unsigned char *restrict y)
{
#if SUMS > 1
    const ptrdiff_t whole = n - n % (2 * SUMS);
    for (ptrdiff_t i = 0; i < whole; i += 2 * SUMS) {
        const reals a = *(const reals *)(x + i) / scale, b = *(const reals *)(x + i + SUMS) / scale;
        const reals first = CLAMPED(a, -1048576.0f, 1048576.0f);
        const reals second = CLAMPED(b, -1048576.0f, 1048576.0f);
        store_two(first, second, last, y + i, SUMS, y + i + SUMS, SUMS);
    }
    return whole;
#else
    (void)x, (void)n, (void)scale, (void)last, (void)y;
    return 0;
#endif
}
"""

OF_TWO = """static IF_CALLED ptrdiff_t NAME(const void *a, const void *b, ptrdiff_t n,
    const int32_t *last, unsigned char *y)
{
#if SUMS == 8
    const ptrdiff_t whole = n - n % 16;
    for (ptrdiff_t i = 0; i < whole; i += 16) {
        const chars c = *(const chars *)((const char *)a + i);
        const chars d = *(const chars *)((const char *)b + i);
        const sums c0 = WIDE_TA(c), c1 = WIDE_TA(SECOND(c));
        const sums d0 = WIDE_TB(d), d1 = WIDE_TB(SECOND(d));
        const reals first = FIRST_RESULT, second = SECOND_RESULT;
        store_two(first, second, last, y + i, 8, y + i + 8, 8);
    }
    return whole;
#else
    (void)a, (void)b, (void)n, (void)last, (void)y;
    return 0;
#endif
}
"""

RUN = 1 << 12
"""The elements of a chunk; shards compute ranges of chunks."""


def quantize_run(cx: KernelContext) -> str:
    """Return the name of a function ``(x, n, scale, last, y)`` that quantizes floats.

    The function returns the number of elements that it computed, at most n.
    """
    declare(cx)
    return cx.call("quantize_run", QUANTIZE)


def run_of_two(cx: KernelContext, text: str) -> str:
    """Return the name of a function ``(a, b, n, last, y)`` that computes bytes from two byte
    operands.

    ``text`` is the C of a float result of ``{0}`` and ``{1}``, which is rounded. The function
    returns the number of elements that it computed, at most n.
    """
    declare(cx)
    types = (cx.type(0).name, cx.type(1).name)
    text = text.replace("FLOAT", "REAL")
    text_of_two = OF_TWO.replace("TA(", f"{types[0]}(").replace("TB(", f"{types[1]}(")
    text_of_two = text_of_two.replace("FIRST_RESULT", text.format("c0", "d0"))
    text_of_two = text_of_two.replace("SECOND_RESULT", text.format("c1", "d1"))
    name = f"run_of_two_{hashlib.sha256(text_of_two.encode()).hexdigest()[:8]}"
    return cx.call(name, text_of_two.replace("NAME", name))


def last_declaration(zero: int, signed: bool) -> str:
    """Return the declaration of ``last``, a parameter of ``store_two``, for a zero point."""
    numbers = (zero + 128, SIGNS) if signed else (zero, 0)
    return f"static const int32_t last[] = {{ {numbers[0]}, {numbers[1]} }};"
