"""C of lane-batched kernels: the vector ``a[i * r + j * c]`` is element (i, j) of several matrices.

``@t`` is the element type, ``@l`` the number of matrices in a vector of 64 bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smelt.native.kernels.lane_batched_bidiagonal_qr import BIDIAGONAL_QR, SHIFT, VALUES_OF_PAIR
from smelt.native.kernels.lane_batched_complex import (
    COMPLEX_CHOLESKY,
    COMPLEX_LU,
    COMPLEX_REFLECTION,
    COMPLEX_RETURN,
    HERMITIAN,
)
from smelt.native.kernels.lane_batched_diagonals import BIDIAGONAL, TRIDIAGONAL
from smelt.native.kernels.lane_batched_ql import PAIR, QL
from smelt.native.kernels.lane_batched_reflections import (
    MULTIPLY,
    REFLECT,
    REFLECTION,
    REFLECTIONS,
    REFLECTIONS_TO,
)
from smelt.native.kernels.lane_batched_rotations import MASKS, NEAR, ROTATE, ROTATION
from smelt.native.kernels.lane_batched_systems import COMPLEX_SUBSTITUTE, SUBSTITUTE
from smelt.native.kernels.lane_batched_vectors import VECTORS

BYTES = 64
"""The bytes of a vector on any CPU; compilers split it if the registers are narrower."""


def lanes_of(type_: str) -> int:
    """Return the number of elements in a vector of ``BYTES``."""
    return BYTES // {"float": 4, "double": 8}[type_]


LANES = f"""typedef @t lanes_@t
    __attribute__((vector_size({BYTES}), aligned(sizeof(@t)), may_alias));
"""

TOGETHER = """/* a = n elements of each matrix, interleaved; matrix l begins at x + l * n. */
static void together_@t(const @t *restrict x, lanes_@t *restrict a, ptrdiff_t n)
{
    @t *const to = (@t *)a;
    for (ptrdiff_t first = 0; first < n; first += @l) {
        const ptrdiff_t end = first + @l < n ? first + @l : n;
        for (ptrdiff_t l = 0; l < @l; ++l)
            for (ptrdiff_t e = first; e < end; ++e)
                to[e * @l + l] = x[l * n + e];
    }
}
"""

NO_INLINE = """/* The inverse of together. */
static void apart_@t(const lanes_@t *restrict a, @t *restrict x, ptrdiff_t n)
{
    const @t *const from = (const @t *)a;
    for (ptrdiff_t first = 0; first < n; first += @l) {
        const ptrdiff_t end = first + @l < n ? first + @l : n;
        for (ptrdiff_t l = 0; l < @l; ++l)
            for (ptrdiff_t e = first; e < end; ++e)
                x[l * n + e] = from[e * @l + l];
    }
}
"""

CHOLESKY = """/* Column by column, two rows at a time. Element (i, j) is a(i, j) minus the dot
   product of rows i and j of the previous columns, divided by the pivot. */
static void cholesky_@t(lanes_@t *restrict a, ptrdiff_t n, ptrdiff_t r, ptrdiff_t c)
{
    const lanes_@t zero = {0};
    lanes_@t failed = zero;
    for (ptrdiff_t j = 0; j < n; ++j) {
        const lanes_@t *const u = a + j * r;
        lanes_@t pivot = u[j * c];
        for (ptrdiff_t k = 0; k < j; ++k)
            pivot -= u[k * c] * u[k * c];
        const lanes_@t root = root_@t(pivot), by = (zero + (@t)1) / root;
        failed += pick_@t((mask_@t)(pivot > 0), zero, zero + (@t)NAN);
        a[j * (r + c)] = root;
        ptrdiff_t i = j + 1;
        for (; i + 2 <= n; i += 2) {
            lanes_@t *const x = a + i * r, *const y = x + r;
            lanes_@t upper = x[j * c], low = y[j * c];
            for (ptrdiff_t k = 0; k < j; ++k) {
                upper -= x[k * c] * u[k * c];
                low -= y[k * c] * u[k * c];
            }
            x[j * c] = upper * by;
            y[j * c] = low * by;
        }
        for (; i < n; ++i) {
            lanes_@t *const x = a + i * r;
            for (ptrdiff_t k = 0; k < j; ++k)
                x[j * c] -= x[k * c] * u[k * c];
            x[j * c] *= by;
        }
    }
    for (ptrdiff_t i = 0; i < n; ++i) {
        for (ptrdiff_t j = 0; j <= i; ++j)
            a[i * r + j * c] += failed;
        for (ptrdiff_t j = i + 1; j < n; ++j)
            a[i * r + j * c] = zero;
    }
}
"""

LU = """/* Column by column: each lane finds its pivot and swaps its rows, then all subtract. */
static void lu_@t(lanes_@t *restrict a, int32_t *restrict pivots, int32_t *restrict order,
    ptrdiff_t m, ptrdiff_t n)
{
    const ptrdiff_t count = m < n ? m : n;
    @t *const at = (@t *)a;
    for (ptrdiff_t l = 0; l < @l; ++l)
        for (ptrdiff_t i = 0; i < m; ++i)
            order[l * m + i] = (int32_t)i;
    for (ptrdiff_t k = 0; k < count; ++k) {
        @t best[@l];
        int32_t place[@l];
        for (ptrdiff_t l = 0; l < @l; ++l) {
            best[l] = __builtin_fabs@s(at[(k * n + k) * @l + l]);
            place[l] = (int32_t)k;
        }
        for (ptrdiff_t i = k + 1; i < m; ++i)
            for (ptrdiff_t l = 0; l < @l; ++l) {
                const @t size = __builtin_fabs@s(at[(i * n + k) * @l + l]);
                place[l] = size > best[l] ? (int32_t)i : place[l];
                best[l] = size > best[l] ? size : best[l];
            }
        for (ptrdiff_t l = 0; l < @l; ++l) {
            const ptrdiff_t p = place[l];
            pivots[l * count + k] = (int32_t)p;
            if (p == k)
                continue;
            for (ptrdiff_t j = 0; j < n; ++j) {
                const @t v = at[(k * n + j) * @l + l];
                at[(k * n + j) * @l + l] = at[(p * n + j) * @l + l];
                at[(p * n + j) * @l + l] = v;
            }
            const int32_t row = order[l * m + k];
            order[l * m + k] = order[l * m + p];
            order[l * m + p] = row;
        }
        lanes_@t pivot = a[k * n + k];
        for (ptrdiff_t l = 0; l < @l; ++l)
            ((@t *)&pivot)[l] = ((@t *)&pivot)[l] == 0 ? 1 : ((@t *)&pivot)[l];
        for (ptrdiff_t i = k + 1; i < m; ++i) {
            const lanes_@t share = a[i * n + k] /= pivot;
            for (ptrdiff_t j = k + 1; j < n; ++j)
                a[i * n + j] -= share * a[k * n + j];
        }
    }
}
"""

_ALL: Sequence[tuple[str, str]] = (
    ("lanes", LANES),
    ("together", TOGETHER),
    ("apart", NO_INLINE),
    ("lu", LU),
    ("substitute", SUBSTITUTE),
    ("reflection", REFLECTION),
    ("reflect", REFLECT),
    ("reflections", REFLECTIONS),
    ("reflections_to", REFLECTIONS_TO),
    ("multiply", MULTIPLY),
    ("tridiagonal", TRIDIAGONAL),
    ("bidiagonal", BIDIAGONAL),
    ("masks", MASKS),
    ("near", NEAR),
    ("cholesky", CHOLESKY),
    ("complex_lu", COMPLEX_LU),
    ("complex_cholesky", COMPLEX_CHOLESKY),
    ("complex_substitute", COMPLEX_SUBSTITUTE),
    ("complex_reflection", COMPLEX_REFLECTION),
    ("hermitian", HERMITIAN),
    ("complex_return", COMPLEX_RETURN),
    ("rotation", ROTATION),
    ("rotate", ROTATE),
    ("pair", PAIR),
    ("ql", QL),
    ("values_of_pair", VALUES_OF_PAIR),
    ("shift", SHIFT),
    ("bidiagonal_qr", BIDIAGONAL_QR),
    *((name, text) for name, (text, _) in VECTORS.items()),
)
_NEEDED = {
    **{name: needed for name, (_, needed) in VECTORS.items()},
    "reflections": ("reflection", "reflect"),
    "reflections_to": ("reflection", "reflect"),
    "multiply": ("reflect",),
    "tridiagonal": ("reflection",),
    "bidiagonal": ("reflection", "reflect"),
    "near": ("masks",),
    "complex_lu": ("masks",),
    "cholesky": ("masks",),
    "complex_cholesky": ("masks",),
    "complex_substitute": ("masks",),
    "hermitian": ("masks", "complex_reflection"),
    "bidiagonal_qr": ("masks", "rotation", "rotate", "values_of_pair", "shift"),
    "ql": ("masks", "rotation", "rotate", "pair"),
}

OF_TYPE: Mapping[str, Mapping[str, str]] = {
    "float": {
        "@t": "float",
        "@l": "16",
        "@i": "int32_t",
        "@u": "uint32_t",
        "@s": "f",
        "@m": "23",
        "@e": "5.9604644775390625e-08",
        "@z": "1.17549435e-38",
        "@h": "1e9",
        "@p": "120",
        "@q": "10",
    },
    "double": {
        "@t": "double",
        "@l": "8",
        "@i": "int64_t",
        "@u": "uint64_t",
        "@s": "",
        "@m": "52",
        "@e": "1.1102230246251565e-16",
        "@z": "2.2250738585072014e-308",
        "@h": "1e90",
        "@p": "1000",
        "@q": "98.70117501498424",
    },
}
"""The placeholders of C texts and their replacements for each element type.

- ``@t``, ``@l``: the type and the lanes of a vector
- ``@i``, ``@u``: integers of the same size, signed and unsigned
- ``@s``: the suffix of functions of math.h
- ``@m``: bits of the mantissa
- ``@e``: half of the difference between 1 and the next larger number
- ``@z``: the smallest normal number
- ``@h``: the largest number, and inverse of the smallest, for which a matrix is not scaled
- ``@p``: the largest exponent of two by which a matrix is scaled
- ``@q``: the factor of ``@e`` in the tolerance of bidiagonal QR
"""


def filled(text: str, type_: str) -> str:
    """Return ``text`` with the placeholders replaced for the element type ``type_``."""
    for word, replacement in OF_TYPE[type_].items():
        text = text.replace(word, replacement)
    return text


TEXTS: Mapping[str, Sequence[tuple[str, str]]] = {
    name: [
        (f"{each}_@t", text)
        for each, text in _ALL
        if each in ("lanes", name, *_NEEDED.get(name, ()))
    ]
    for name, _ in _ALL
}
"""The text of each function, preceded by the texts of the functions that it calls."""
