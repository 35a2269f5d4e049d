"""C that computes singular vectors from the rotations and reflections of lane-batched matrices."""

from __future__ import annotations

from collections.abc import Mapping

EMBED = """/* to = identity with n x n elements replaced: column j by that of other in lanes whose
   bit j of swapped is set, else by that of own. */
static void embed_@t(const lanes_@t *restrict own, const lanes_@t *restrict other,
    mask_@t swapped, lanes_@t *restrict to, ptrdiff_t n, ptrdiff_t rows, ptrdiff_t columns)
{
    for (ptrdiff_t i = 0; i < rows; ++i)
        for (ptrdiff_t j = 0; j < columns; ++j)
            to[i * columns + j] = (lanes_@t){0} + (@t)(i == j);
    for (ptrdiff_t j = 0; j < n; ++j) {
        const mask_@t there = (swapped & (@i)((@u)1 << j)) != 0;
        for (ptrdiff_t i = 0; i < n; ++i)
            to[i * columns + j] = pick_@t(there, other[j * n + i], own[j * n + i]);
    }
}
"""

RETURN = """/* to = product of the reflections times to. Vector k begins at a + k * (n + 1), with
   stride step; the first has as many rows as to. */
static void return_@t(const lanes_@t *restrict a, ptrdiff_t step, ptrdiff_t n,
    const @t *restrict taus, ptrdiff_t count, lanes_@t *restrict to, lanes_@t *restrict w,
    ptrdiff_t rows, ptrdiff_t columns)
{
    for (ptrdiff_t k = count - 1; k >= 0; --k)
        reflect_@t(a + k * (n + 1), step, taus + k * @l, to + k * columns, columns, w, rows - k,
            columns);
}
"""

RAISE = """/* Make a lower bidiagonal matrix upper bidiagonal by rotations (c, s) of its rows. */
static void raise_@t(lanes_@t *restrict d, lanes_@t *restrict e, lanes_@t *restrict c,
    lanes_@t *restrict s, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i + 1 < n; ++i) {
        d[i] = rotation_@t(d[i], e[i], c + i, s + i);
        e[i] = s[i] * d[i + 1];
        d[i + 1] = c[i] * d[i + 1];
    }
}
"""

LOWER = """/* Apply the inverse rotations of raise to the left vectors. */
static void lower_@t(lanes_@t *restrict to, const lanes_@t *restrict c,
    const lanes_@t *restrict s, ptrdiff_t n)
{
    for (ptrdiff_t i = n - 2; i >= 0; --i)
        rotate_@t(to + (i + 1) * n, to + i * n, n, c[i], s[i]);
}
"""

SORT = """/* values = absolute values of a lane times by, descending; order = their old places. */
static void sort_@t(const @t *restrict d, @t *restrict values, ptrdiff_t *restrict order,
    ptrdiff_t n, @t by)
{
    for (ptrdiff_t i = 0; i < n; ++i) {
        const @t value = __builtin_fabs@s(d[i * @l]) * by;
        ptrdiff_t to = i;
        for (; to > 0 && values[to - 1] < value; --to) {
            values[to] = values[to - 1];
            order[to] = order[to - 1];
        }
        values[to] = value;
        order[to] = i;
    }
}
"""

VECTORS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "embed": (EMBED, ("masks",)),
    "return": (RETURN, ("reflect",)),
    "raise": (RAISE, ("masks", "rotation")),
    "lower": (LOWER, ("masks", "rotate")),
    "sort": (SORT, ()),
}
"""The text of each function, and the names of those that it calls."""
