"""C before and after a transform: real numbers in pairs, and convolutions for long primes.

An element of a block is the real parts of all its rows, then their imaginary parts. If an array
has one row, its parts are ``apart`` from each other. ``step`` is the distance between elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from smelt.native.types import CType

LOOP = "LANES_APART"
"""The pragma before the loop to vectorize."""

FROM_PAIRS = """/* y = spectrum of 2h real numbers, [h + 1]; x = that of h complex pairs, [h]. */
static void $name(const $t *restrict x, $t *restrict y, const $t *restrict w, ptrdiff_t h,
    ptrdiff_t xa, ptrdiff_t ya)
{
    $inner
    for (ptrdiff_t l = 0; l < $lanes; ++l) {
        y[l] = x[l] + x[xa + l];
        y[ya + l] = 0;
        y[h * $step + l] = x[l] - x[xa + l];
        y[h * $step + ya + l] = 0;
    }
    $outer
    for (ptrdiff_t k = 1; k < h; ++k)
        $inner
        for (ptrdiff_t l = 0; l < $lanes; ++l) {
            const $t a = x[k * $step + l], b = x[k * $step + xa + l];
            const $t c = x[(h - k) * $step + l], d = x[(h - k) * $step + xa + l];
            const $t er = (a + c) * ($t).5, ei = (b - d) * ($t).5;
            const $t hr = (b + d) * ($t).5, hi = (c - a) * ($t).5;
            y[k * $step + l] = er + (hr * w[k] - hi * w[h + k]);
            y[k * $step + ya + l] = ei + (hr * w[h + k] + hi * w[k]);
        }
}
"""

TO_PAIRS = """/* y = twice the spectrum of h complex pairs, [h]; x = that of 2h real numbers. */
static void $name(const $t *restrict x, $t *restrict y, const $t *restrict w, ptrdiff_t h,
    ptrdiff_t xa, ptrdiff_t ya)
{
    $inner
    for (ptrdiff_t l = 0; l < $lanes; ++l) {
        y[l] = x[l] + x[h * $step + l];
        y[ya + l] = x[l] - x[h * $step + l];
    }
    $outer
    for (ptrdiff_t k = 1; k < h; ++k)
        $inner
        for (ptrdiff_t l = 0; l < $lanes; ++l) {
            const $t a = x[k * $step + l], b = x[k * $step + xa + l];
            const $t c = x[(h - k) * $step + l], d = x[(h - k) * $step + xa + l];
            const $t hr = (a - c) * w[k] - (b + d) * w[h + k];
            const $t hi = (a - c) * w[h + k] + (b + d) * w[k];
            y[k * $step + l] = a + c - hi;
            y[k * $step + ya + l] = b - d + hr;
        }
}
"""

MIRROR = """/* Complete the spectrum of n real numbers from its first half, in place. */
static void $name($t *x, ptrdiff_t n, ptrdiff_t xa)
{
    $inner
    for (ptrdiff_t l = 0; l < $lanes; ++l)
        x[xa + l] = 0;
    for (ptrdiff_t l = 0; l < (n % 2 == 0 ? $lanes : 0); ++l)
        x[n / 2 * $step + xa + l] = 0;
    $outer
    for (ptrdiff_t k = 1; 2 * k < n; ++k)
        $inner
        for (ptrdiff_t l = 0; l < $lanes; ++l) {
            x[(n - k) * $step + l] = x[k * $step + l];
            x[(n - k) * $step + xa + l] = -x[k * $step + xa + l];
        }
}
"""

CHIRP = """/* y = x times the chirp w, [2, n], padded with zeros to room elements. */
static void $name(const $t *restrict x, $t *restrict y, const $t *restrict w, ptrdiff_t n,
    ptrdiff_t room, ptrdiff_t xa, ptrdiff_t ya)
{
    $outer
    for (ptrdiff_t k = 0; k < n; ++k)
        $inner
        for (ptrdiff_t l = 0; l < $lanes; ++l) {
            const $t re = x[k * $step + l], im = x[k * $step + xa + l];
            y[k * $step + l] = re * w[k] - im * w[n + k];
            y[k * $step + ya + l] = re * w[n + k] + im * w[k];
        }
    $outer
    for (ptrdiff_t k = n; k < room; ++k)
        $inner
        for (ptrdiff_t l = 0; l < $lanes; ++l)
            y[k * $step + l] = y[k * $step + ya + l] = 0;
}
"""

CONJUGATE = """/* x = conjugate(x w), element by element; w is [2, n]. */
static void $name($t *restrict x, const $t *restrict w, ptrdiff_t n, ptrdiff_t xa)
{
    $outer
    for (ptrdiff_t k = 0; k < n; ++k)
        $inner
        for (ptrdiff_t l = 0; l < $lanes; ++l) {
            const $t re = x[k * $step + l], im = x[k * $step + xa + l];
            x[k * $step + l] = re * w[k] - im * w[n + k];
            x[k * $step + xa + l] = -(re * w[n + k] + im * w[k]);
        }
}
"""

FINAL = """/* x = conjugate(x) w, element by element; w is [2, n]. */
static void $name($t *restrict x, const $t *restrict w, ptrdiff_t n, ptrdiff_t xa)
{
    $outer
    for (ptrdiff_t k = 0; k < n; ++k)
        $inner
        for (ptrdiff_t l = 0; l < $lanes; ++l) {
            const $t re = x[k * $step + l], im = -x[k * $step + xa + l];
            x[k * $step + l] = re * w[k] - im * w[n + k];
            x[k * $step + xa + l] = re * w[n + k] + im * w[k];
        }
}
"""

SCALE = """static void $name($t *restrict x, $t by, ptrdiff_t n, ptrdiff_t xa)
{
    $outer
    for (ptrdiff_t k = 0; k < n; ++k)
        $inner
        for (ptrdiff_t l = 0; l < $lanes; ++l) {
            x[k * $step + l] *= by;
            x[k * $step + xa + l] *= by;
        }
}
"""

TEXTS = {
    "from_pairs": FROM_PAIRS,
    "to_pairs": TO_PAIRS,
    "mirror": MIRROR,
    "chirp": CHIRP,
    "conjugate": CONJUGATE,
    "final": FINAL,
    "scale": SCALE,
}


@dataclass(frozen=True)
class Blocks:
    """The layout of intermediate arrays: blocks of ``lanes`` rows, or one row if ``lanes`` is 1."""

    type: CType
    lanes: int

    @property
    def step(self) -> int:
        """The distance between consecutive elements of a row."""
        return 2 * self.lanes if self.lanes > 1 else 1

    def apart(self, length: int) -> int:
        """Return the distance from a real part to its imaginary part in an array of ``length``
        elements.
        """
        return self.lanes if self.lanes > 1 else length

    def function(self, name: str) -> tuple[str, str]:
        """Return name and text of the function ``name`` of ``TEXTS`` for this layout."""
        full = f"fourier_{name}_{self.type.name}_{self.lanes}"
        several_rows = self.lanes > 1  # then the inner loop is over rows, else over elements
        fields = {"t": self.type.name, "lanes": self.lanes, "step": self.step}
        fields |= {"inner": LOOP if several_rows else "", "outer": "" if several_rows else LOOP}
        return full, Template(TEXTS[name]).substitute(fields, name=full)
