"""The inner kernel of products of integers: a few rows by two vectors of sums in registers.

One side is vectors of pairs, the other one pair at a time, in all lanes alike. In a convolution,
pixels are the vectors and filters the pairs; in a product of matrices, columns of constant weights
are the vectors, widened as they are read, and rows of the left side the pairs.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.lanes import declare
from smelt.native.writer import Writer

BYTES = """    const int32_t *restrict bias, const float *restrict factors,
    const int32_t *restrict last, unsigned char *restrict out, ptrdiff_t pitch,
    const ptrdiff_t *restrict to, const ptrdiff_t *restrict wide)"""
"""The last parameters of tiles that store bytes."""

ROWS, VECTORS = 6, 2
"""Twelve sums, two vectors and one pair: what sixteen registers hold."""


def convolution_tile(cx: KernelContext, rows: int, positions: int, is_bytes: bool) -> str:
    """A function ``(channels, plane, places, image, at, weights, ...)``; at its end ``results``, or
    if it ``is_bytes``: ``bias, factors, last, out, pitch, to, wide``.

    ``channels`` counts pairs of them, ``plane`` apart in ``image``; ``places`` are where each
    position of the kernel reads, from each of the two vectors ``at`` on. Weights lie by pair of
    channels, position, row. The ``results`` are rows of both vectors. Bytes of a row are stored
    ``pitch`` after those before, of each vector ``wide`` of them from ``to`` on.
    """
    name = f"filters_{rows}" + ("" if positions > 1 else "_pointwise")
    name += "_bytes" if is_bytes else ""
    out = Writer()
    out.line(f"static APART void {name}(ptrdiff_t channels, ptrdiff_t plane,")
    out.line("    const int32_t *restrict places, const int16_t *restrict image,")
    out.line("    const ptrdiff_t *restrict at, const int16_t *restrict w,")
    out.line(BYTES if is_bytes else "    int32_t *restrict results)")
    with out.block(""):
        _start(out, rows, "bias[{m}]" if is_bytes else "")
        if positions > 1:
            head = f"for (ptrdiff_t p = 0; p < {positions}; ++p)"
        else:
            head, plain = "", "(void)places;"
            out.line(plain)
        for v in range(VECTORS):
            out.line(f"const int16_t *i{v} = image + at[{v}];")
        with out.block("for (; channels > 0; --channels)"):
            with out.block(head):
                place = " + places[p]" if head else ""
                for v in range(VECTORS):
                    out.line(f"const pairs b{v} = *(const pairs *)(i{v}{place});")
                for m in range(rows):
                    out.line(f"const pairs a{m} = SAME_PAIR(w + {2 * m});")
                    _multiply(out, m)
                out.line(f"w += {2 * rows};")
            for v in range(VECTORS):
                out.line(f"i{v} += plane;")
        if is_bytes:
            for m in range(rows):
                scaled = ", ".join(f"REAL(s{m}_{v}) * factors[{m}]" for v in range(2))
                ends = "out + to[0], wide[0], out + to[1], wide[1]"
                out.line(f"store_two({scaled}, last, {ends});")
                out.line("out += pitch;")
        else:
            _end(out, rows)
    declare(cx)
    return cx.call(name, out.text())


def matrix_tile(
    cx: KernelContext, rows: int, wide: bool, is_bytes: bool, vectors: int = VECTORS
) -> str:
    """A function ``(pairs, a, stride, b, step, ...)``: rows of ``a`` by some vectors of ``b``.

    ``b`` holds bytes, or 16 bits if ``wide``; ``step`` are its elements from pair to pair. At the
    end ``results``, or if it ``is_bytes``: ``bias, factors, last, out, pitch, to, wide``, where
    ``to`` and ``wide`` have an element for each vector.
    """
    name = f"rows_{rows}x{vectors}" + ("_wide" if wide else "") + ("_bytes" if is_bytes else "")
    type_ = "int16_t" if wide else "int8_t"
    out = Writer()
    out.line(f"static APART void {name}(ptrdiff_t count, const int16_t *restrict a,")
    out.line(f"    ptrdiff_t stride, const {type_} *restrict b, ptrdiff_t step,")
    out.line(BYTES if is_bytes else "    int32_t *restrict results)")
    with out.block(""):
        _start(out, rows, "*(const sums *)(bias{at})" if is_bytes else "", vectors)
        with out.block("for (; count > 0; --count)"):
            for v in range(vectors):
                at = "b" if v == 0 else f"b + {2 * v} * SUMS"
                value = f"*(const pairs *)({at})" if wide else f"WIDENED({at})"
                out.line(f"const pairs b{v} = {value};")
            for m in range(rows):
                at = "a" if m == 0 else f"a + {m} * stride"
                out.line(f"const pairs a{m} = SAME_PAIR({at});")
                _multiply(out, m, vectors)
            out.line("a += 2, b += step;")
        if rows == 1:
            out.line("(void)stride;")
        if is_bytes:
            _end_in_bytes(out, rows, vectors)
        else:
            _end(out, rows, vectors)
    declare(cx)
    return cx.call(name, out.text())


def _end_in_bytes(out: Writer, rows: int, vectors: int) -> None:
    for v in range(vectors):
        out.line(f"const reals factor{v} = *(const reals *)(factors{_vector(v)});")
    for m in range(rows):
        for v in range(0, vectors, 2):
            if v:
                out.line(f"if (wide[{v}] > 0)")
            scaled = ", ".join(f"REAL(s{m}_{each}) * factor{each}" for each in (v, v + 1))
            ends = f"out + to[{v}], wide[{v}], out + to[{v + 1}], wide[{v + 1}]"
            out.line(f"store_two({scaled}, last, {ends});")
        out.line("out += pitch;")


def _start(out: Writer, rows: int, start: str = "", vectors: int = VECTORS) -> None:
    for m in range(rows):
        for v in range(vectors):
            out.line(f"sums s{m}_{v} = {{ 0 }};")
            if start:
                out.line(f"s{m}_{v} += {start.format(m=m, at=_vector(v))};")


def _vector(v: int) -> str:
    return "" if v == 0 else " + SUMS" if v == 1 else f" + {v} * SUMS"


def _multiply(out: Writer, m: int, vectors: int = VECTORS) -> None:
    for v in range(vectors):
        out.line(f"ADD_PRODUCTS(s{m}_{v}, a{m}, b{v});")


def _end(out: Writer, rows: int, vectors: int = VECTORS) -> None:
    for m in range(rows):
        for v in range(vectors):
            out.line(f"*(sums *)(results + {m * vectors + v} * SUMS) = s{m}_{v};")
