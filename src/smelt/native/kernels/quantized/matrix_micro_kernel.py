"""The micro-kernel of int8 matrix products: a few rows by some vectors of columns.

Columns of the right side are vectors of groups of four rows, signed bytes. Groups of four of a
left row are broadcast to all lanes: as unsigned bytes where the CPU has int8 dot products, else
as 16-bit integers, with the elements at even positions of all groups first.
"""

from __future__ import annotations

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.conv_micro_kernel import (
    RESULTS,
    end_in_sums,
    start_sums,
    vector,
)
from smelt.native.kernels.quantized.dot4 import declare
from smelt.native.kernels.quantized.epilogue import Epilogue
from smelt.native.kernels.quantized.integer_vectors import MOST_SUMS

LEFT = """static IF_CALLED void flip_row(const unsigned char *restrict from, ptrdiff_t depth,
    unsigned char flip, unsigned char *restrict to)
{
    for (ptrdiff_t k = 0; k < depth; ++k)
        to[k] = (unsigned char)(from[k] ^ flip);
    for (ptrdiff_t k = depth; k % 4 != 0; ++k)
        to[k] = 0;
}
static IF_CALLED void halve_row(const unsigned char *restrict from, ptrdiff_t depth,
    unsigned char flip, int16_t *restrict to)
{
    int16_t *odd = to + (depth + 3) / 4 * 2;
    ptrdiff_t k = 0;
#if SUMS > 1
    const pairs zero = { 0 };
    const pairs flips = zero + flip;
    for (; k + 4 * SUMS <= depth; k += 4 * SUMS) {
        const unsigned_pairs both = *(const unsigned_pairs *)(const void *)(from + k);
        *(pairs *)(void *)(to + k / 2) = (pairs)(both & 255) ^ flips;
        *(pairs *)(void *)(odd + k / 2) = (pairs)(both >> 8) ^ flips;
    }
#endif
    for (; k < depth; k += 4) {
        for (ptrdiff_t i = 0; i < 4; ++i)
            (i % 2 ? odd : to)[k / 2 + i / 2] = (int16_t)(k + i < depth ? from[k + i] ^ flip : 0);
    }
}
"""
"""C functions that pack rows of bytes, made unsigned by ``flip``, padded with zeros to groups of
four."""


def matrix_micro_kernel(
    cx: KernelContext, rows: int, is_int16: bool, epilogue: Epilogue, vectors: int
) -> tuple[str, str]:
    """Return the names of two micro-kernels: one with int8 dot products ("" if ``is_int16``), one
    without.

    Their parameters are ``(quads, a, stride, b, ...)``: rows of ``a`` times some vectors of ``b``.
    ``b`` is packed by ``quantized_dot.pack``, in panels as wide as ``vectors`` of the widest kind;
    if ``is_int16``, its elements are 16-bit integers. The last parameters are ``bias, results``, or
    the ``names`` of ``epilogue`` if it makes bytes, where ``to`` and ``is_int16`` have an element
    per vector.
    """
    name = f"rows_{rows}x{vectors}" + ("_wide" if is_int16 else "")
    name += ("_bytes" if epilogue.is_bytes else "") + ("_fractions" if epilogue.fractions else "")
    out = Writer()
    for suffix in ("_halves",) if is_int16 else ("_whole", "_halves"):
        is_int8 = suffix == "_whole"
        if is_int8:
            out.line("#if QUADS")
        left, right = "unsigned char" if is_int8 else "int16_t", "int16_t" if is_int16 else "int8_t"
        head = "NO_INLINE WITH_QUADS" if is_int8 else "NO_INLINE"
        out.line(f"static {head} void {name}{suffix}(ptrdiff_t quads,")
        out.line(f"    const {left} *restrict a, ptrdiff_t stride, const {right} *restrict b,")
        out.line(epilogue.parameters if epilogue.is_bytes else RESULTS)
        with out.block(""):
            _multiply(out, rows, vectors, is_int8, is_int16)
            if epilogue.is_bytes:
                _end_in_bytes(out, epilogue, rows, vectors)
            else:
                end_in_sums(out, rows, vectors)
        if is_int8:
            out.line("#endif")
    declare(cx)
    cx.call("halve_row", LEFT)
    cx.call(name, out.text())
    return "" if is_int16 else f"{name}_whole", f"{name}_halves"


def _multiply(out: Writer, rows: int, vectors: int, by_dot4: bool, is_int16: bool) -> None:
    """Write the loop over groups of four; ``by_dot4`` uses int8 dot products.

    ``quads`` is the number of groups of four, ``b0`` a vector of columns of the right side, ``a0``
    a group of row 0 of the left side, and ``s0_0`` the sums of row 0 and vector 0. Without dot
    products, ``b0`` and ``a0`` have the elements at even positions, ``c0`` and ``d0`` those at odd
    positions. The C with dot products, for one row and one vector of 16 sums:

    ```
    for (; quads > 0; --quads) {
        const sums b0 = *(const sums *)b, a0 = same_word(a);
        ADD_QUADS(s0_0, a0, b0);
        a += 4, b += 64;
    ```
    """
    start_sums(out, rows, "*(const sums *)(const void *)(bias{at})", vectors)
    panel = vectors * MOST_SUMS
    if not by_dot4:
        out.line("const int16_t *odd = a + 2 * quads;")
    with out.block("for (; quads > 0; --quads)"):
        for vector in range(vectors):
            at = "b" if vector == 0 else f"b + {(2 if is_int16 else 4) * vector} * SUMS"
            if by_dot4:
                out.line(f"const sums b{vector} = *(const sums *)(const void *)({at});")
                continue
            even = f"*(const pairs *)(const void *)({at})" if is_int16 else f"EVEN_BYTES({at})"
            after = f"({at} + {2 * panel})"
            odd = f"*(const pairs *)(const void *){after}" if is_int16 else f"ODD_BYTES({at})"
            out.line(f"const pairs b{vector} = {even}, c{vector} = {odd};")
        for m in range(rows):
            row = "" if m == 0 else f" + {m} * stride"
            if by_dot4:
                out.line(f"const sums a{m} = same_word(a{row});")
            else:
                out.line(f"const pairs a{m} = SAME_PAIR(a{row}), d{m} = SAME_PAIR(odd{row});")
            for vector in range(vectors):
                if by_dot4:
                    out.line(f"ADD_QUADS(s{m}_{vector}, a{m}, b{vector});")
                else:
                    out.line(f"ADD_HALVES(s{m}_{vector}, a{m}, b{vector});")
                    out.line(f"ADD_HALVES(s{m}_{vector}, d{m}, c{vector});")
        out.line("a += 4;" if by_dot4 else "a += 2, odd += 2;")
        out.line(f"b += {4 * panel};")
    if rows == 1:
        out.line("(void)stride;")


def _end_in_bytes(out: Writer, epilogue: Epilogue, rows: int, vectors: int) -> None:
    """Write the requantization of sums to bytes, two vectors at a time.

    ``s0_1`` are the sums of row 0 and vector 1, ``factor1`` the scales of the columns of vector 1.
    ``out`` points to a row of bytes, rows are ``pitch`` apart. The bytes of vector 1 are stored
    from ``out + to[1]`` on, the first ``wide[1]`` of them: fewer than a vector, or 0, at the end of
    a row. ``last`` has the zero point and the sign bits to flip (``store_two``).

    ```
    const reals factor0 = *(const reals *)(factors);
    const reals factor1 = *(const reals *)(factors + SUMS);
    store_two(REAL(s0_0) * factor0, REAL(s0_1) * factor1, last,
        out + to[0], wide[0], out + to[1], wide[1]);
    out += pitch;
    ```
    """
    for v in range(vectors):
        out.line(f"const reals factor{v} = *(const reals *)(factors{vector(v)});")
        if epilogue.fractions:
            out.line(f"const reals fraction{v} = *(const reals *)(fractions{vector(v)});")
    for row in range(rows):
        for v in range(0, vectors, 2):
            if v:
                out.line(f"if (wide[{v}] > 0)")
            scaled = ", ".join(
                epilogue.scaled(f"REAL(s{row}_{each})", f"factor{each}", f"fraction{each}")
                for each in (v, v + 1)
            )
            ends = f"out + to[{v}], wide[{v}], out + to[{v + 1}], wide[{v + 1}]"
            out.line(f"store_two({scaled}, last, {ends});")
        out.line("out += pitch;")
