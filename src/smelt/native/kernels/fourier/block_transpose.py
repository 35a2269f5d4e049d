"""C that transposes rows to blocks and back: lane l of each element belongs to row l."""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import PRELUDE
from smelt.native.types import CType

WORDS = {4: "int32_t", 8: "int64_t"}


def _stage(lanes: int, source: str, to: str) -> list[str]:
    """Return the C of one stage of a transposition: it interleaves vector i with
    vector i + half."""
    half, lines = lanes // 2, []
    for i in range(half):
        first, second = f"{source}{i}", f"{source}{i + half}"
        lines.append(f"const fourier_vec_@t {to}{2 * i} = LOW({first}, {second});")
        lines.append(f"const fourier_vec_@t {to}{2 * i + 1} = HIGH({first}, {second});")
    return lines


def _interleaving_indices(lanes: int, first: int) -> str:
    """Return the shuffle indices that interleave two vectors from element ``first`` on."""
    return ", ".join(str(i + part) for i in range(first, first + lanes // 2) for part in (0, lanes))


def _square(lanes: int) -> str:
    """Return the C function that transposes a square of one vector's lanes per
    side, in registers."""
    low, high = _interleaving_indices(lanes, 0), _interleaving_indices(lanes, lanes // 2)
    lines = [
        f"const fourier_vec_@t a{i} = *(const fourier_vec_@t *)(from + {i} * step);"
        for i in range(lanes)
    ]
    source, size = "a", 1
    while size < lanes:
        lines += _stage(lanes, source, chr(ord(source) + 1))
        source, size = chr(ord(source) + 1), 2 * size
    lines += [f"*(fourier_vec_@t *)(to + {i} * pitch) = {source}{i};" for i in range(lanes)]
    body = "".join(f"    {line}\n" for line in lines)
    return f"""#if defined(__clang__)
#define LOW(v, w) __builtin_shufflevector(v, w, {low})
#define HIGH(v, w) __builtin_shufflevector(v, w, {high})
#else
#define LOW(v, w) __builtin_shuffle(v, w, __extension__(fourier_places_@t){{ {low} }})
#define HIGH(v, w) __builtin_shuffle(v, w, __extension__(fourier_places_@t){{ {high} }})
#endif
static inline void fourier_square_@t(const @t *from, ptrdiff_t step, @t *to, ptrdiff_t pitch)
{{
{body}}}
#undef LOW
#undef HIGH
"""


def _squares(type_: CType) -> str:
    """Return the C of the square transposition for each vector width, under preprocessor
    conditions.
    """
    texts: list[str] = []
    for floats in (16, 8, 4):
        lanes = floats * 4 // type_.size
        texts.append(f"#{'el' if texts else ''}if LANES == {floats}\n{_square(lanes)}")
    return "".join(texts) + "#endif\n"


TRANSPOSE = """#if LANES > 1
typedef @t fourier_vec_@t __attribute__((vector_size(4 * LANES), aligned(sizeof(@t)), may_alias));
typedef @w fourier_places_@t __attribute__((vector_size(4 * LANES)));
@squares#endif
/* Transpose: row r of n elements becomes column r. */
static void fourier_transpose_@t(const @t *restrict from, ptrdiff_t step,
    @t *restrict to, ptrdiff_t pitch, ptrdiff_t rows, ptrdiff_t n)
{
    ptrdiff_t wide = 0, tall = 0;
#if LANES > 1
    const ptrdiff_t side = 4 * LANES / (ptrdiff_t)sizeof(@t);
    wide = n - n % side, tall = rows - rows % side;
    for (ptrdiff_t e = 0; e < wide; e += side)
        for (ptrdiff_t r = 0; r < tall; r += side)
            fourier_square_@t(from + r * step + e, step, to + e * pitch + r, pitch);
#endif
    for (ptrdiff_t r = 0; r < rows; ++r)
        for (ptrdiff_t e = r < tall ? wide : 0; e < n; ++e)
            to[e * pitch + r] = from[r * step + e];
}
"""


def transpose_rows(cx: KernelContext, type_: CType) -> str:
    """Return the name of the C function that transposes rows to columns."""
    cx.call("LANES", PRELUDE)
    text = TRANSPOSE.replace("@squares", _squares(type_))
    text = text.replace("@t", type_.name).replace("@w", WORDS[type_.size])
    return cx.call(f"fourier_transpose_{type_.name}", text)
