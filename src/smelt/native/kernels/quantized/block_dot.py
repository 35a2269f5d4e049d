"""The C of products with weights in blocks of 4 or 8 bits, whose left operand is rounded to int8.

A row of the left operand is rounded in the blocks of the weights: the largest magnitude of a block
becomes 127. Products of a block are summed in 32 bits without loss, and multiplied by both scales.

A panel holds the codes of ``PANEL`` columns, the rows of a block together. Four codes of a column
stand side by side, as int8 dot products of a CPU take them. With 4 bits, the low halves of these
bytes are four codes, and the high halves are the next four.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.block_dot_text import DOTS, OF_FLOATS, OF_HALF, ROUNDED
from smelt.native.kernels.quantized.dot4 import declare
from smelt.native.kernels.quantized.panel_codes import PANEL
from smelt.native.kernels.quantized.tile_dot_text import TILE_WEIGHTS, TILES


@dataclass(frozen=True)
class Form:
    """A form of weights: codes of ``bits``; ``zeros``: they bring zero points; ``halves``: their
    scales are float16."""

    bits: int
    zeros: bool
    halves: bool

    @property
    def suffix(self) -> str:
        """The end of the names of C functions of this form."""
        return f"{self.bits}{'_zeros' * self.zeros}{'_halves' * self.halves}"

    @property
    def scale_type(self) -> str:
        """The C type of scales."""
        return "uint16_t" if self.halves else "float"

    @property
    def parameters(self) -> str:
        """The C parameters of weights."""
        zeros = "const unsigned char *restrict zeros, " * self.zeros
        return f"const unsigned char *restrict w, const {self.scale_type} *restrict scales, {zeros}"


def rounded_blocks(cx: KernelContext) -> str:
    """Return the name of a function ``(x, n, size, blocks, to, factors, of_blocks)``.

    It rounds n floats in blocks of ``size``, padded with zeros, and stores the factor and the sum
    of each block. It returns whether all floats are finite; if not, blocks are missing.
    Magnitudes below 1e-35 become 0.
    """
    declare(cx)
    return cx.call("rounded_blocks", ROUNDED)


def block_dot(cx: KernelContext, form: Form, rows: int, panels: int) -> str:
    """Return the name of a micro-kernel of ``rows`` rows by ``panels`` panels.

    Its parameters are ``(blocks, size, a, factors, of_blocks, w, scales, [zeros,] bias, y,
    pitch)``: ``size`` is the number of codes of a block; ``a``, ``factors`` and ``of_blocks`` are
    contiguous rows; ``y`` gets rows ``pitch`` apart, ``panels`` panels wide.
    """
    declare(cx)
    cx.call("DOTS", DOTS)
    name = f"block_dot_{rows}x{panels}_{form.suffix}"
    out = Writer()
    out.line(f"static NO_INLINE void {name}(ptrdiff_t blocks, ptrdiff_t size,")
    out.line("    const int8_t *restrict a, const float *restrict factors,")
    out.line(f"    const int32_t *restrict of_blocks, {form.parameters}")
    out.line("    const float *restrict bias, float *restrict y, ptrdiff_t pitch)")
    with out.block(""):
        out.line(f"const ptrdiff_t row = blocks * size, panel = row * {2 * form.bits};")
        out.line(f"const ptrdiff_t bytes = size * {2 * form.bits};")
        with out.block(f"for (ptrdiff_t c = 0; c < {PANEL}; c += DOTS)"):
            _write_columns(out, form, rows, panels)
    return cx.call(name, out.text())


def _write_columns(out: Writer, form: Form, rows: int, panels: int) -> None:
    """Write the results of the columns from ``c`` on, as many as a vector has, of each panel.

    ```
    dot_reals t0_0 = *(const dot_reals *)(bias + 0 + c);
    for (ptrdiff_t b = 0; b < blocks; ++b) {
        ...
    }
    *(dot_reals *)(y + 0 * pitch + 0 + c) = t0_0;
    ```
    """
    for p in range(panels):
        for m in range(rows):
            out.line(f"dot_reals t{m}_{p} = *(const dot_reals *)(bias + {PANEL * p} + c);")
    with out.block("for (ptrdiff_t b = 0; b < blocks; ++b)"):
        for m in range(rows):
            start = "0" if form.zeros else f"-{1 << form.bits - 1} * of_blocks[{m} * blocks + b]"
            for p in range(panels):
                out.line(f"dots s{m}_{p} = EVERY({start});")
        out.line("const int8_t *from = a + b * size;")
        for p in range(panels):
            out.line(f"const unsigned char *w{p} = w + {p} * panel + b * bytes + 4 * c;")
        per_word = 32 // form.bits
        with out.block(f"for (ptrdiff_t k = 0; k < size; k += {per_word}, from += {per_word})"):
            _write_products(out, form, rows, panels)
        _write_scaled(out, form, rows, panels)
    for m in range(rows):
        for p in range(panels):
            out.line(f"*(dot_reals *)(y + {m} * pitch + {PANEL * p} + c) = t{m}_{p};")


def _write_products(out: Writer, form: Form, rows: int, panels: int) -> None:
    """Write the products of the codes of one word of each column.

    ```
    const codes q0 = *(const codes *)w0, l0_0 = q0 & 0x0f0f0f0f, l0_1 = q0 >> 4 & 0x0f0f0f0f;
    const dots a0_0 = FOUR(from + 0 * row + 0);
    ADD_SMALL_DOTS(s0_0, l0_0, a0_0);
    ```
    """
    for p in range(panels):
        out.line(f"const codes q{p} = *(const codes *)w{p};")
        if form.bits == 8:
            out.line(f"const codes l{p}_0 = q{p};")
        else:
            out.line(f"const codes l{p}_0 = q{p} & 0x0f0f0f0f, l{p}_1 = q{p} >> 4 & 0x0f0f0f0f;")
        out.line(f"w{p} += {4 * PANEL};")
    add = "ADD_SMALL_DOTS" if form.bits < 8 else "ADD_DOTS"
    for m in range(rows):
        for half in range(8 // form.bits):
            out.line(f"const dots a{m}_{half} = FOUR(from + {m} * row + {4 * half});")
            for p in range(panels):
                out.line(f"{add}(s{m}_{p}, l{p}_{half}, a{m}_{half});")


def _write_scaled(out: Writer, form: Form, rows: int, panels: int) -> None:
    """Write the addition of the sums of a block, times both scales.

    ```
    const dot_reals f0 = *(const dot_reals *)(scales + (0 * blocks + b) * 16 + c);
    t0_0 += f0 * EVERY_REAL(factors[0 * blocks + b]) * DOT_REALS(s0_0);
    ```
    """
    for p in range(panels):
        at = f"({p} * blocks + b) * {PANEL} + c"
        if form.halves:
            out.line(f"const codes h{p} = WIDE_HALVES(scales + {at});")
            out.line(f"const dot_reals f{p} = FINITE_HALVES(h{p});")
        else:
            out.line(f"const dot_reals f{p} = *(const dot_reals *)(scales + {at});")
        if form.zeros:
            out.line(f"const dots z{p} = ZEROS(zeros + {at});")
    for m in range(rows):
        for p in range(panels):
            zero = f" - z{p} * EVERY(of_blocks[{m} * blocks + b])" if form.zeros else ""
            factor = f"EVERY_REAL(factors[{m} * blocks + b])"
            out.line(f"t{m}_{p} += f{p} * {factor} * DOT_REALS(s{m}_{p}{zero});")


def block_dot_of_floats(cx: KernelContext, form: Form) -> str:
    """Return the name of a function of one row of ``n`` floats, whose values may be infinite.

    Its parameters are ``(x, n, columns, blocks, size, w, scales, [zeros,] bias, y)``: it computes
    the first ``columns`` results, one weight at a time.
    """
    declare(cx)
    name = f"block_dot_of_floats_{form.suffix}"
    text = OF_FLOATS.replace("NAME", name).replace("PARAMETERS", form.parameters)
    at = f"(c / {PANEL} * blocks + k / size) * {PANEL} + c % {PANEL}"
    zero = f"(int)zeros[{at}]" if form.zeros else str(1 << form.bits - 1)
    scale = f"float_of_half(scales[{at}])" if form.halves else f"scales[{at}]"
    if form.halves:
        cx.call("float_of_half", OF_HALF)
    word = 32 // form.bits
    place = f"((c / {PANEL} * blocks * size + k / {word} * {word}) * {PANEL} * {form.bits} / 8"
    place += f" + c % {PANEL} * 4 + k % 4)"
    code = f"w[{place}]" if form.bits == 8 else f"(w[{place}] >> (k % 8 / 4 * 4) & 15)"
    text = text.replace("CODE", code).replace("ZERO", zero).replace("SCALE", scale)
    return cx.call(name, text)


def tile_weights(cx: KernelContext, form: Form) -> str:
    """Return the name of a function ``(blocks, size, w, scales, [zeros,] to)`` of one panel.

    It unpacks the weights of a panel to bfloat16, as ``tile_dot`` reads them. It exists only where
    ``TILES`` is 1.
    """
    declare(cx)
    cx.call("DOTS", DOTS)
    cx.call("TILES", TILES)
    name = f"tile_weights_{form.suffix}"
    at = f"b * {PANEL}"
    scale = f"*(const dot_reals *)(scales + {at})"
    if form.halves:
        scale = f"FINITE_HALVES(WIDE_HALVES(scales + {at}))"
    words = {
        "NAME": name,
        "PARAMETERS": form.parameters,
        "SCALE": scale,
        "ZERO": f"ZEROS(zeros + {at})" if form.zeros else f"EVERY({1 << form.bits - 1})",
        "WORD": str(32 // form.bits),
        "FIRST": "i % 2 * 16 + i / 2 * 4",
        "MASK": str((1 << form.bits) - 1),
    }
    return cx.call(name, re.sub("|".join(words), lambda found: words[found[0]], TILE_WEIGHTS))
