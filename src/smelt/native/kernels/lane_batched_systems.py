"""C of lane-batched triangular systems: some columns of the right side at a time.

The sums of ``COLUMNS`` columns are in registers, so a load of the matrix serves all of them, and no
addition waits for the one before. Each pivot is inverted once, as in LAPACK.
"""

from __future__ import annotations

COLUMNS = 4

_HEAD = """static void NAME_@t(PARAMETERS,
    ptrdiff_t n, ptrdiff_t columns, ptrdiff_t ar, ptrdiff_t ac, ptrdiff_t xr, ptrdiff_t xc,
    int lower, int unit)
{
    for (ptrdiff_t r = 0; r < n; ++r) {
        const ptrdiff_t i = lower ? r : n - 1 - r;
        const ptrdiff_t first = lower ? 0 : i + 1, end = lower ? i : n;
        PIVOT
        ptrdiff_t j = 0;
"""

_PIVOT = "const lanes_@t scale = (@t)1 / a[i * (ar + ac)];"

_COMPLEX_PIVOT = """const lanes_@t re = a[i * (ar + ac)], im = b[i * (ar + ac)];
        const lanes_@t p = size_@t(re), q = size_@t(im), most = pick_@t((mask_@t)(p > q), p, q);
        const lanes_@t f = re / most, g = im / most, by = most * (f * f + g * g);
        const lanes_@t c = f / by, s = g / by;"""


def _columns(count: int, *, is_complex: bool) -> str:
    """Return the C loop that solves row ``i`` for ``count`` columns at a time.

    For one real column:

    ```
    for (; j + 1 <= columns; j += 1) {
        lanes_float u0 = x[i * xr + (j + 0) * xc];
        for (ptrdiff_t k = first; k < end; ++k) {
            const lanes_float f = a[i * ar + k * ac];
            u0 -= f * x[k * xr + (j + 0) * xc];
    ```
    """
    numbers = range(count)
    lines = [f"for (; j + {count} <= columns; j += {count}) {{"]
    sides = {"u": "x", "v": "y"} if is_complex else {"u": "x"}
    for number in numbers:
        for sum_, side in sides.items():
            lines.append(f"    lanes_@t {sum_}{number} = {side}[i * xr + (j + {number}) * xc];")
    lines.append("    for (ptrdiff_t k = first; k < end; ++k) {")
    factor_im = ", g = b[i * ar + k * ac]" if is_complex else ""
    lines.append(f"        const lanes_@t f = a[i * ar + k * ac]{factor_im};")
    for number in numbers:
        place = f"[k * xr + (j + {number}) * xc]"
        if is_complex:
            lines.append(f"        const lanes_@t m{number} = x{place}, h{number} = y{place};")
            lines.append(f"        u{number} -= f * m{number};")
            lines.append(f"        v{number} -= f * h{number};")
            lines.append(f"        u{number} += g * h{number};")
            lines.append(f"        v{number} -= g * m{number};")
        else:
            lines.append(f"        u{number} -= f * x{place};")
    lines.append("    }")
    for number in numbers:
        place, u, v = f"[i * xr + (j + {number}) * xc]", f"u{number}", f"v{number}"
        if is_complex:
            lines.append(f"    x{place} = {u};")
            lines.append(f"    y{place} = {v};")
            lines.append("    if (!unit) {")
            lines.append(f"        x{place} = {u} * c + {v} * s;")
            lines.append(f"        y{place} = {v} * c - {u} * s;")
            lines.append("    }")
        else:
            lines.append(f"    x{place} = {u};")
            lines.append("    if (!unit)")
            lines.append(f"        x{place} = {u} * scale;")
    lines.append("}")
    return "".join(f"        {line}\n" for line in lines)


def _substitute(name: str, parameters: str, pivot: str, *, is_complex: bool) -> str:
    """Return the C function ``name`` of the type ``@t``."""
    head = _HEAD.replace("NAME", name).replace("PARAMETERS", parameters).replace("PIVOT", pivot)
    loops = "".join(_columns(count, is_complex=is_complex) for count in (COLUMNS, 1))
    return f"{head}{loops}    }}\n}}\n"


SUBSTITUTE = "/* Solve a y = x in place of x; strides are ar and ac of a, xr and xc of x. */\n"
SUBSTITUTE += _substitute(
    "substitute", "const lanes_@t *restrict a, lanes_@t *restrict x", _PIVOT, is_complex=False
)

COMPLEX_SUBSTITUTE = "/* substitute for complex numbers a + b i and x + y i. */\n" + _substitute(
    "complex_substitute",
    "const lanes_@t *restrict a, const lanes_@t *restrict b,\n"
    "    lanes_@t *restrict x, lanes_@t *restrict y",
    _COMPLEX_PIVOT,
    is_complex=True,
)
