"""Stable argsort of a row: its indices sorted by element, equal ones by index.

Elements of at most 4 bytes are mapped to unsigned integers in the same order, and sorted with their
indices by radix sort; longer ones by merge sort.
"""

from __future__ import annotations

from smelt.native.kernels.kernel import KernelContext
from smelt.native.types import CType

RUN = 8
"""The indices that are sorted by insertion before runs are merged."""

MERGED = """/* Return the indices 0 to n - 1 sorted by element, then by index (merge sort). */
static int64_t *{name}(const {t} *row, ptrdiff_t step, ptrdiff_t n, int64_t *places,
    int64_t *other)
{{
    for (ptrdiff_t first = 0; first < n; first += {run})
        for (ptrdiff_t i = first; i < n && i < first + {run}; ++i) {{
            const {t} a = row[i * step];
            ptrdiff_t at = i;
            while (at > first) {{
                const {t} b = row[places[at - 1] * step];
                if (!({before}))
                    break;
                places[at] = places[at - 1];
                --at;
            }}
            places[at] = i;
        }}
    for (ptrdiff_t width = {run}; width < n; width *= 2) {{
        int64_t *const merged = other;
        for (ptrdiff_t first = 0; first < n; first += 2 * width) {{
            const ptrdiff_t middle = first + width < n ? first + width : n;
            const ptrdiff_t end = middle + width < n ? middle + width : n;
            ptrdiff_t i = first, j = middle, k = first;
            while (i < middle && j < end) {{
                const {t} a = row[places[j] * step], b = row[places[i] * step];
                const int later = {before};
                merged[k++] = places[later ? j : i];
                j += later;
                i += !later;
            }}
            while (i < middle)
                merged[k++] = places[i++];
            while (j < end)
                merged[k++] = places[j++];
        }}
        other = places;
        places = merged;
    }}
    return places;
}}
"""

BY_BYTES = """/* Return the indices 0 to n - 1 sorted by element, then by index (radix sort). */
static int64_t *{name}(const {t} *row, ptrdiff_t step, ptrdiff_t n, int64_t *places, int64_t *other)
{{
    uint64_t *from = (uint64_t *)places, *to = (uint64_t *)other;
    ptrdiff_t found[{bytes}][256] = {{ {{ 0 }} }};
    for (ptrdiff_t i = 0; i < n; ++i) {{
        const {t} v = row[i * step];
        uint32_t key;
        {key}
        for (int byte = 0; byte < {bytes}; ++byte)
            ++found[byte][key >> 8 * byte & 255];
        from[i] = (uint64_t)key << 32 | (uint64_t)i;
    }}
    for (int byte = 0; byte < {bytes}; ++byte) {{
        const int shift = 32 + 8 * byte;
        ptrdiff_t *const at = found[byte];
        ptrdiff_t sum = 0;
        uint64_t *const last = from;
        if (at[from[0] >> shift & 255] == n)
            continue;
        for (int i = 0; i < 256; ++i) {{
            const ptrdiff_t count = at[i];
            at[i] = sum;
            sum += count;
        }}
        for (ptrdiff_t i = 0; i < n; ++i)
            to[at[from[i] >> shift & 255]++] = from[i];
        from = to;
        to = last;
    }}
    for (ptrdiff_t i = 0; i < n; ++i)
        from[i] &= 0xffffffffu;
    return (int64_t *)from;
}}
"""
FLOAT_KEY = """memcpy(&key, &v, 4);
        key = v == 0 ? 0u : key; /* both zeros are equal */
        key = v != v ? 0xffffffffu : key >> 31 ? ~key : key | 0x80000000u;"""


def sort_row(cx: KernelContext, before: str) -> str:
    """Return the name of a support function ``(row, step, n, places, other)`` for the first input.

    ``before`` is C that is true if ``a`` goes before ``b``, where ``b`` has the smaller index.
    """
    type_, largest = cx.type(0), cx.int("largest")
    name = f"sorted_{type_.name}_{largest}"
    if type_.size > 4:
        text = MERGED.format(name=name, t=type_.name, run=RUN, before=before)
    else:
        key = _key(type_) + ("\n        key = ~key;" if largest else "")
        if type_.size < 4 and largest:
            key += f"\n        key &= {2 ** (8 * type_.size) - 1}u;"
        text = BY_BYTES.format(name=name, t=type_.name, key=key, bytes=type_.size)
    return cx.call(name, text)


def _key(type_: CType) -> str:
    """Return the C that computes ``key``, an unsigned integer in the same order, from ``v``."""
    if type_.kind == "float":
        return FLOAT_KEY
    sign = 2 ** (8 * type_.size - 1) if type_.signed else 0
    return (
        f"key = (uint32_t)((int32_t)v + {sign});"
        if type_.size < 4
        else f"key = (uint32_t)v ^ {sign}u;"
    )
