"""The inner kernel of products of integers: a few rows by two vectors of sums in registers.

One side is vectors of pairs, the other one pair at a time, in all lanes alike. In a convolution,
pixels are the vectors and filters the pairs; in a product of matrices, columns of constant weights
are the vectors, widened as they are read, and rows of the left side the pairs.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.lanes import declare
from smelt.native.kernels.quantized.quads import declare as declare_quads
from smelt.native.writer import Writer

BYTES = """    const int32_t *restrict bias, const float *restrict factors,
    const int32_t *restrict last, unsigned char *restrict out, ptrdiff_t pitch,
    const ptrdiff_t *restrict to, const ptrdiff_t *restrict wide)"""
"""The last parameters of tiles that store bytes."""

ROWS, VECTORS = 6, 2
"""Twelve sums, two vectors and one pair: what sixteen registers hold."""


IMAGE = """ptrdiff_t quads, ptrdiff_t plane, const int32_t *restrict places,
    const unsigned char *restrict image, const ptrdiff_t *restrict at,"""
RESULTS = "    const int32_t *restrict bias, int32_t *restrict results)"


def convolution_tile(cx: KernelContext, rows: int, positions: int, is_bytes: bool) -> str:
    """A function ``(quads, plane, places, image, at, whole, apart, bias, ...)``; at its end
    ``results``, or if it ``is_bytes``: ``factors, last, out, pitch, to, wide``.

    ``quads`` of channels lie ``plane`` bytes apart in ``image``; ``places`` are where each position
    of the kernel reads, from each of the two vectors ``at`` on; then for each, where both of its
    halves do. Weights lie by quad of channels,
    position, row: ``whole`` are read if ``HAS_QUADS``, else ``apart``, which are 16 bits, first
    all at even places of a quad. The ``results`` are rows of both vectors. Bytes of a row are
    stored ``pitch`` after those before, of each vector ``wide`` of them from ``to`` on.
    """
    name = f"filters_{rows}" + ("" if positions > 1 else "_pointwise")
    name += "_bytes" if is_bytes else ""
    given = "quads, plane, places, image, at"
    rest = "bias, factors, last, out, pitch, to, wide" if is_bytes else "bias, results"
    last = BYTES if is_bytes else RESULTS
    out = Writer()
    out.line("#if QUADS")
    out.line(f"static APART WITH_QUADS void {name}_whole({IMAGE}")
    out.line("    const int8_t *restrict w,")
    out.line(last)
    with out.block(""):
        _convolve(out, rows, positions, is_bytes, halves=1)
    out.line("#endif")
    out.line(f"static APART void {name}_halves({IMAGE}")
    out.line("    const int16_t *restrict w,")
    out.line(last)
    with out.block(""):
        _convolve(out, rows, positions, is_bytes, halves=2)
    out.line(f"static inline void {name}({IMAGE}")
    out.line("    const int8_t *whole, const int16_t *apart,")
    out.line(last)
    with out.block(""):
        out.line("#if QUADS")
        with out.block("if (whole != NULL && HAS_QUADS)"):
            out.line(f"{name}_whole({given}, whole, {rest});")
            out.line("return;")
        out.line("#endif")
        out.line("(void)whole;")
        out.line(f"{name}_halves({given}, apart, {rest});")
    declare_quads(cx)
    return cx.call(name, out.text())


def _convolve(out: Writer, rows: int, positions: int, is_bytes: bool, *, halves: int) -> None:
    """The body of a tile; of two halves, the first is read from a byte before the quad on."""
    _start(out, rows, "bias[{m}]")
    in_loop = positions > 1
    before = " - 1" if halves == 2 and not in_loop else ""
    for v in range(VECTORS):
        out.line(f"const unsigned char *i{v} = image + at[{v}]{before};")
    if not in_loop:
        out.line("(void)places;")
    elif halves == 2:
        out.line(f"places += {positions};")
    if halves == 2 and not in_loop:
        out.line("ptrdiff_t step = 1;")
    with out.block(f"for (quads *= {1 if in_loop else halves}; quads > 0; --quads)"):
        head = f"for (ptrdiff_t p = 0; p < {halves * positions}; ++p)" if in_loop else ""
        with out.block(head):
            _step(out, rows, " + places[p]" if in_loop else "", halves)
        step = "step" if halves == 2 and not in_loop else "plane"
        for v in range(VECTORS):
            out.line(f"i{v} += {step};")
        if step == "step":
            out.line("step = plane - step;")
    if not is_bytes:
        _end(out, rows)
        return
    for m in range(rows):
        scaled = ", ".join(f"REAL(s{m}_{v}) * factors[{m}]" for v in range(2))
        out.line(f"store_two({scaled}, last, out + to[0], wide[0], out + to[1], wide[1]);")
        out.line("out += pitch;")


def _step(out: Writer, rows: int, place: str, halves: int) -> None:
    type_, elements = ("sums", 4) if halves == 1 else ("pairs", 2)
    for v in range(VECTORS):
        read = f"*(const sums *)(i{v}{place})" if halves == 1 else f"SECONDS(i{v}{place})"
        out.line(f"const {type_} b{v} = {read};")
    for m in range(rows):
        read = "same_word" if halves == 1 else "SAME_PAIR"
        out.line(f"const {type_} a{m} = {read}(w + {elements * m});")
        for v in range(VECTORS):
            if halves == 1:
                out.line(f"ADD_QUADS(s{m}_{v}, b{v}, a{m});")
            else:
                out.line(f"ADD_HALVES(s{m}_{v}, a{m}, b{v});")
    out.line(f"w += {elements * rows};")


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
