"""The micro-kernel of integer convolutions: a few filters by two vectors of pixels.

A lane of a vector of pixels is four channels of one pixel, or two channels as 16 bits. Weights are
broadcast to all lanes.
"""

from __future__ import annotations

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.dot4 import declare
from smelt.native.kernels.quantized.epilogue import Epilogue
from smelt.native.kernels.quantized.pairwise_safe import add_excess, declare_pairwise
from smelt.native.kernels.quantized.wide_micro_kernel import declare_twos, emit_wide

ROWS, VECTORS = 6, 2
"""Twelve vectors of sums, two of pixels and one of weights fit in sixteen registers."""


IMAGE = """ptrdiff_t quads, ptrdiff_t plane, const int32_t *restrict places,
    const unsigned char *restrict image, const ptrdiff_t *restrict at,"""
GIVEN = "quads, plane, places, image, at"
EXCESS = "    const int32_t *first, const int32_t *excess, const int32_t *steps,"
RESULTS = "    const int32_t *restrict bias, int32_t *restrict results)"


def conv_micro_kernel(
    cx: KernelContext,
    rows: int,
    positions: int,
    epilogue: Epilogue,
    pairwise_safe: bool = False,
) -> str:
    """Return the name of a function ``(quads, plane, places, image, at, whole, apart, first,
    excess, steps, bias, ...)``.

    The last parameters are ``results``, or the ``names`` of ``epilogue`` if it makes bytes.

    - ``image`` has ``quads`` groups of four channels, ``plane`` bytes apart.
    - ``at`` has the offsets of both vectors in ``image``. ``places`` has the offset of each kernel
      position, to be added, then two offsets per position: of its even and of its odd channels.
    - ``whole`` are the weights by group, position and row, for int8 dot products (``HAS_QUADS``).
    - ``apart`` are the weights for other CPUs: as 16 bits, those at even positions of a group
      first. If ``pairwise_safe`` and ``PAIRWISE``, they are clamped bytes instead, with their
      ``excess``.
    - ``results`` has rows of both vectors. Bytes are stored in rows ``pitch`` apart, ``wide``
      elements of each vector from ``to`` on.
    """
    is_bytes, is_wide = epilogue.is_bytes, epilogue.is_small
    name = _name(rows, positions, epilogue, pairwise_safe)
    ends = epilogue.names if is_bytes else "bias, results"
    last = epilogue.parameters if is_bytes else RESULTS
    out = Writer()
    if is_wide:
        declare_twos(cx)
    _emit_versions(out, name, rows, positions, epilogue, pairwise_safe)
    out.line(f"static inline void {name}({IMAGE}")
    out.line("    const int8_t *whole, const void *apart,")
    out.line(EXCESS)
    out.line(last)
    with out.block(""):
        _choose(out, name, ends, pairwise_safe, is_wide)
    declare(cx)
    if pairwise_safe:
        declare_pairwise(cx)
    return cx.call(name, out.text())


def _name(rows: int, positions: int, epilogue: Epilogue, pairwise_safe: bool) -> str:
    """Return the C name of a micro-kernel."""
    name = f"filters_{rows}" + (f"_at_{positions}" if positions > 1 else "_pointwise")
    name += ("_bytes" if epilogue.is_bytes else "") + ("_pairwise" if pairwise_safe else "")
    name += "_by_four" if epilogue.is_small else ""
    return name + ("_fractions" if epilogue.fractions else "")


def _emit_versions(
    out: Writer, name: str, rows: int, positions: int, epilogue: Epilogue, pairwise_safe: bool
) -> None:
    """Write the versions of a micro-kernel: for int8 dot products, for 512 bits and for others."""

    def function(kind: str, head: str, weights: str) -> None:
        """Write one version of the micro-kernel: ``whole``, ``pairwise`` or ``halves``."""
        out.line(f"static {head} void {name}_{kind}({IMAGE}")
        out.line(f"    const {weights} *restrict w,")
        if kind == "pairwise":
            out.line(EXCESS)
        out.line(epilogue.parameters if epilogue.is_bytes else RESULTS)
        with out.block(""):
            _convolve(out, rows, positions, epilogue, kind)

    out.line("#if QUADS")
    function("whole", "NO_INLINE WITH_QUADS", "int8_t")
    out.line("#endif")
    if epilogue.is_small:
        emit_wide(out, f"{name}_doubled", IMAGE, epilogue, rows, positions)
    if pairwise_safe:
        out.line("#if PAIRWISE")
        function("pairwise", "NO_INLINE", "int8_t")
        out.line("#else")
    function("halves", "NO_INLINE", "int16_t")
    if pairwise_safe:
        out.line("#endif")


def _choose(out: Writer, name: str, ends: str, pairwise_safe: bool, is_wide: bool) -> None:
    """Write the body of the function that calls the version for the CPU.

    ```
    if (whole != NULL && HAS_QUADS) {
        filters_6_at_9_whole(quads, plane, places, image, at, whole, bias, results);
        return;
    }
    filters_6_at_9_halves(quads, plane, places, image, at, apart, bias, results);
    ```
    """
    out.line("#if QUADS")
    with out.block("if (whole != NULL && HAS_QUADS)"):
        if is_wide:
            out.line("#if QUADS == 2")
            with out.block("if (wide[2] > 0)"):
                out.line(f"{name}_doubled({GIVEN}, whole, {ends});")
                out.line("return;")
            out.line("#endif")
        _call(out, f"{name}_whole", "whole", ends, is_wide)
        out.line("return;")
    out.line("#endif")
    out.line("(void)whole, (void)first, (void)excess, (void)steps;")
    if pairwise_safe:
        out.line("#if PAIRWISE")
        weights = "(const int8_t *)apart, first, excess, steps"
        _call(out, f"{name}_pairwise", weights, ends, is_wide)
        out.line("#else")
    _call(out, f"{name}_halves", "(const int16_t *)apart", ends, is_wide)
    if pairwise_safe:
        out.line("#endif")


def _call(out: Writer, name: str, weights: str, ends: str, is_wide: bool) -> None:
    """Write a call for two vectors of pixels and, if it ``is_wide``, for two more if they have
    pixels.
    """
    out.line(f"{name}({GIVEN}, {weights}, {ends});")
    if is_wide:
        more = GIVEN.replace("at", "at + 2"), ends.replace("to, wide", "to + 2, wide + 2")
        out.line("if (wide[2] > 0)")
        out.line(f"    {name}({more[0]}, {weights}, {more[1]});")


def _point_at_pixels(out: Writer, positions: int, passes: int) -> None:
    """Declare pointers ``i`` to the pixels of each vector; each group of channels is read in
    ``passes``.

    Several kernel positions have their offsets in ``places``; those of two passes come second. A
    single position needs no table: one pass reads at offset 0, two passes at -1 and then at 0.

    ```
    const unsigned char *i0 = image + at[0] - 1;
    const unsigned char *i1 = image + at[1] - 1;
    (void)places;
    ptrdiff_t step = 1;
    ```
    """
    alternates = passes == 2 and positions == 1
    before = " - 1" if alternates else ""
    for v in range(VECTORS):
        out.line(f"const unsigned char *i{v} = image + at[{v}]{before};")
    if positions == 1:
        out.line("(void)places;")
    elif passes == 2:
        out.line(f"places += {positions};")
    if alternates:
        out.line("ptrdiff_t step = 1;")


def _convolve(out: Writer, rows: int, positions: int, epilogue: Epilogue, kind: str) -> None:
    """Write the body of a micro-kernel of ``kind``: ``whole``, ``pairwise`` or ``halves``.

    The version ``halves`` multiplies first the even channels of a group, then the odd ones. It uses
    the high byte of each 16 bits, so it reads the even channels from one byte before the group, and
    the odd channels from its start.

    ```
    sums s0_0 = { 0 }, s0_1 = { 0 };
    for (; quads > 0; --quads) {
        const sums b0 = *(const sums *)i0, b1 = *(const sums *)i1;
        ADD_QUADS(s0_0, b0, same_word(w + 0)), ADD_QUADS(s0_1, b1, same_word(w + 0));
        i0 += plane, i1 += plane;
    ```
    """
    passes = 2 if kind == "halves" else 1
    start_sums(out, rows, "bias[{m}]")
    if kind == "pairwise":
        out.line("const sums zero = { 0 };")
        out.line("const pairs ones = (pairs)(zero + 0x00010001);")
    in_loop = positions > 1
    alternates = passes == 2 and not in_loop  # steps to the odd channels, then to the next group
    _point_at_pixels(out, positions, passes)
    with out.block(f"for (quads *= {1 if in_loop else passes}; quads > 0; --quads)"):
        head = f"for (ptrdiff_t p = 0; p < {passes * positions}; ++p)" if in_loop else ""
        with out.block(head):
            _step(out, rows, " + places[p]" if in_loop else "", kind)
        for v in range(VECTORS):
            out.line(f"i{v} += {'step' if alternates else 'plane'};")
        if alternates:
            out.line("step = plane - step;")
    if kind == "pairwise":
        add_excess(out, rows, [f"at[{v}]" for v in range(VECTORS)])
    if epilogue.is_bytes:
        _store_bytes(out, rows, epilogue)
    else:
        end_in_sums(out, rows)


def _store_bytes(out: Writer, rows: int, epilogue: Epilogue) -> None:
    """Write the stores of all rows as bytes, two rows at a time if both vectors are adjacent."""
    out.line("/* Whole vectors lie together. */")
    with out.block("if (SUMS > 1 && wide[0] == SUMS && wide[1] == SUMS)"):
        for row in range(0, rows - 1, 2):
            values = ", ".join(_scaled_row(epilogue, each) for each in (row, row + 1))
            out.line(f"store_rows({values}, last, out + to[0], pitch);")
            out.line("out += 2 * pitch;")
        if rows % 2:
            _store_row(out, epilogue, rows - 1)
    with out.block("else"):
        for row in range(rows):
            _store_row(out, epilogue, row)
            out.line("out += pitch;")


def _scaled_row(epilogue: Epilogue, row: int) -> str:
    """Return the C of both vectors of a row, times its factor."""
    factor, fraction = f"factors[{row}]", f"fractions[{row}]"
    return ", ".join(epilogue.scaled(f"REAL(s{row}_{v})", factor, fraction) for v in range(VECTORS))


def _store_row(out: Writer, epilogue: Epilogue, row: int) -> None:
    """Write the store of both vectors of a row as bytes."""
    ends = "last, out + to[0], wide[0], out + to[1], wide[1]"
    out.line(f"store_two({_scaled_row(epilogue, row)}, {ends});")


def _step(out: Writer, rows: int, offset: str, kind: str) -> None:
    """Write the multiplication of one group of four channels, or of half a group."""
    type_, elements = ("pairs", 2) if kind == "halves" else ("sums", 4)
    add = {"whole": "ADD_QUADS", "pairwise": "ADD_BYTES", "halves": "ADD_HALVES"}[kind]
    for v in range(VECTORS):
        at = f"(i{v}{offset})"
        read = f"SECONDS{at}" if kind == "halves" else f"*(const sums *)(const void *){at}"
        out.line(f"const {type_} b{v} = {read};")
    for row in range(rows):
        read = "SAME_PAIR" if kind == "halves" else "same_word"
        out.line(f"const {type_} a{row} = {read}(w + {elements * row});")
        for v in range(VECTORS):
            factors = f"a{row}, b{v}" if kind == "halves" else f"b{v}, a{row}"
            out.line(f"{add}(s{row}_{v}, {factors});")
    out.line(f"w += {elements * rows};")


def start_sums(out: Writer, rows: int, start: str = "", vectors: int = VECTORS) -> None:
    """Write the declaration of sums that start as 0 plus ``start``."""
    for row in range(rows):
        for v in range(vectors):
            out.line(f"sums s{row}_{v} = {{ 0 }};")
            if start:
                out.line(f"s{row}_{v} += {start.format(m=row, at=vector(v))};")


def vector(v: int) -> str:
    """Return the offset of vector ``v``, as C."""
    return "" if v == 0 else " + SUMS" if v == 1 else f" + {v} * SUMS"


def end_in_sums(out: Writer, rows: int, vectors: int = VECTORS) -> None:
    """Write the store of sums to ``results``."""
    for row in range(rows):
        for vector in range(vectors):
            out.line(f"*(sums *)(results + {row * vectors + vector} * SUMS) = s{row}_{vector};")
