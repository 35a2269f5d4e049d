"""The micro-kernel of convolutions of bytes by 512 bits: filters by four vectors of pixels.

One int8 dot product of 512 bits replaces two of 256 bits.
"""

from __future__ import annotations

from smelt.native.emit.writer import Writer
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.quantized.dot4 import declare
from smelt.native.kernels.quantized.epilogue import Epilogue

TWOS = """#if QUADS == 2
typedef int32_t two_sums __attribute__((vector_size(64), aligned(1), may_alias));
typedef float two_reals __attribute__((vector_size(64)));
typedef char two_bytes_of __attribute__((vector_size(64)));
#if defined(__clang__)
#define BOTH(p, q) __builtin_shufflevector(*(const sums_anywhere *)(const void *)(p), \\
    *(const sums_anywhere *)(const void *)(q), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
#define ADD_BOTH(s, a, b) s = (two_sums)__builtin_ia32_vpdpbusd512(s, a, b)
#define PACKED_TWO(a, b) __builtin_ia32_packssdw512(a, b)
#define PACKED_FOUR(a, b) __builtin_ia32_packuswb512(a, b)
#define MIXED_SUMS(v, ...) __builtin_shufflevector(v, v, __VA_ARGS__)
#define ALL_LANES 65535
#else
#define ALL_LANES -1
typedef int16_t two_pairs __attribute__((vector_size(64)));
typedef long long two_longs_of __attribute__((vector_size(64)));
typedef long long four_longs __attribute__((vector_size(32)));
#define BOTH(p, q) ((two_sums)__builtin_ia32_inserti64x4_mask( \\
    (two_longs_of)__builtin_ia32_si512_256si((sums)*(const sums_anywhere *)(const void *)(p)), \\
    (four_longs)*(const sums_anywhere *)(const void *)(q), 1, (two_longs_of)zero, 255))
#define ADD_BOTH(s, a, b) s = __builtin_ia32_vpdpbusd_v16si(s, a, b)
#define PACKED_TWO(a, b) \\
    __builtin_ia32_packssdw512_mask(a, b, (two_pairs)zero, 4294967295)
#define PACKED_FOUR(a, b) \\
    __builtin_ia32_packuswb512_mask(a, b, (two_bytes_of)zero, 18446744073709551615u)
#define MIXED_SUMS(v, ...) __builtin_shuffle(v, __extension__(two_sums){ __VA_ARGS__ })
#endif
#define TWO_REALS(s) __builtin_convertvector(s, two_reals)
#define NEAR_SUMS(v) (two_sums)__builtin_ia32_cvtps2dq512_mask(v, zero, ALL_LANES, 4) + last[0]
#endif
"""
"""``BOTH`` joins two reads of 256 bits; ``PACKED_FOUR`` packs four vectors to bytes, by lanes.

These are macros because functions would need the target attributes of their callers."""

VECTORS = 4
"""The vectors of pixels of the micro-kernel."""


def emit_wide(
    out: Writer, name: str, head: str, epilogue: Epilogue, rows: int, positions: int
) -> None:
    """Write the function ``name``; its parameters are ``head``, the weights, and those of
    ``epilogue``.

    ```
    two_sums s0_0 = zero + bias[0], s0_1 = zero + bias[0];
    for (; quads > 0; --quads) {
        const two_sums b0 = BOTH(i0, i1), b1 = BOTH(i2, i3);
        const two_sums a0 = zero + *(const word *)(w + 0);
        ADD_BOTH(s0_0, b0, a0), ADD_BOTH(s0_1, b1, a0);
    ```
    """
    in_loop = positions > 1
    out.line("#if QUADS == 2")
    out.line(f"static NO_INLINE WITH_QUADS void {name}({head}")
    out.line("    const int8_t *restrict w,")
    out.line(epilogue.parameters)
    with out.block(""):
        out.line("const two_sums zero = { 0 };")
        for row in range(rows):
            for v in range(VECTORS // 2):
                out.line(f"two_sums s{row}_{v} = zero + bias[{row}];")
        for v in range(VECTORS):
            out.line(f"const unsigned char *i{v} = image + at[{v}];")
        if not in_loop:
            out.line("(void)places;")
        with out.block("for (; quads > 0; --quads)"):
            loop = f"for (ptrdiff_t p = 0; p < {positions}; ++p)"
            with out.block(loop if in_loop else ""):
                _multiply(out, rows, " + places[p]" if in_loop else "")
            out.line("i0 += plane, i1 += plane, i2 += plane, i3 += plane;")
        _store(out, epilogue, rows)
    out.line("#endif")


def _multiply(out: Writer, rows: int, offset: str) -> None:
    """Write the multiplication of one group of four channels."""
    for v in range(VECTORS // 2):
        out.line(f"const two_sums b{v} = BOTH(i{2 * v}{offset}, i{2 * v + 1}{offset});")
    for row in range(rows):
        out.line(f"const two_sums a{row} = zero + *(const word *)(w + {4 * row});")
        for v in range(VECTORS // 2):
            out.line(f"ADD_BOTH(s{row}_{v}, b{v}, a{row});")
    out.line(f"w += {4 * rows};")


def _store(out: Writer, epilogue: Epilogue, rows: int) -> None:
    """Write the stores of two rows at a time; the last row of an odd number is stored twice.

    ```
    const two_sums packed = PACKED_FOUR(PACKED_TWO(...), PACKED_TWO(...));
    *(two_sums *)bytes = MIXED_SUMS(packed, 0, 4, 8, 12, ...) ^ last[1];
    memcpy(out + to[0], bytes + 0, 32);
    out += pitch;
    ```
    """
    out.line("unsigned char bytes[64];")
    out.line("const int whole = wide[0] + wide[1] + wide[2] + wide[3] == 4 * SUMS;")
    for m in range(0, rows, 2):
        last = min(m + 1, rows - 1)
        with out.block(""):
            near = [
                epilogue.scaled(f"TWO_REALS(s{row}_{v})", f"factors[{row}]", f"fractions[{row}]")
                for row in (m, last)
                for v in range(2)
            ]
            out.line("const two_sums packed = (two_sums)PACKED_FOUR(")
            out.line(f"    PACKED_TWO(NEAR_SUMS({near[0]}), NEAR_SUMS({near[1]})),")
            out.line(f"    PACKED_TWO(NEAR_SUMS({near[2]}), NEAR_SUMS({near[3]})));")
            order = "0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15"
            out.line(f"*(two_sums *)bytes = MIXED_SUMS(packed, {order}) ^ last[1];")
            for row in range(1 + (last > m)):
                with out.block("if (whole)"):
                    out.line(f"memcpy(out + to[0], bytes + {32 * row}, 32);")
                with out.block("else"):
                    out.line(f"for (ptrdiff_t v = 0; v < {VECTORS}; ++v)")
                    out.line(f"    store_some(out + to[v], bytes + {32 * row} + 8 * v, wide[v]);")
                out.line("out += pitch;")


def declare_twos(cx: KernelContext) -> None:
    """Let the kernel use 512-bit vectors."""
    declare(cx)
    cx.call("two_sums", TWOS)
