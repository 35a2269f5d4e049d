"""C of one FFT step: transforms of a few elements for all rows of a block, with twiddle factors.

A step of radix r reads ``x`` as [r][left][done] blocks and writes ``y`` as [left][r][done]. A block
is the real parts of all its rows, then their imaginary parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from smelt.native.kernels.fourier.roots import roots
from smelt.native.types import CType

Complex = tuple[str, str]

LANES_APART = """#if defined(__GNUC__) && !defined(__clang__)
#define LANES_APART _Pragma("GCC ivdep")
#else
#define LANES_APART
#endif
"""
"""A pragma for loops over the independent rows of a block. GCC cannot prove the independence if
distances are parameters."""


class _Codelet:
    """The C statements of a small transform; each intermediate number is a C variable."""

    def __init__(self, type_: CType, sign: int) -> None:
        self.type, self.sign = type_, sign
        self.lines: list[str] = []

    def name(self, text: str) -> str:
        """Define a new variable with the value ``text``, and return it."""
        self.lines.append(f"const {self.type.name} v{len(self.lines)} = {text};")
        return f"v{len(self.lines) - 1}"

    def complex_variable(self, real: str, imaginary: str) -> Complex:
        """Define variables for a real and an imaginary part, and return both."""
        return self.name(real), self.name(imaginary)

    def rotated(self, number: Complex, product: int, length: int) -> Complex:
        """Return ``number`` times the root of unity ``exp(sign * 2i pi product / length)``.

        Multiples of 90 degrees swap or negate parts. Odd multiples of 45 degrees take two
        multiplications, because cosine and sine have the same absolute value.
        """
        cos, sin = (float(each) for each in roots(np.asarray(product), length, self.sign))
        re, im = number
        if abs(sin) < 1e-9:
            return number if cos > 0 else self.complex_variable(f"-{re}", f"-{im}")
        if abs(cos) < 1e-9:
            return (
                self.complex_variable(f"-{im}", re)
                if sin > 0
                else self.complex_variable(im, f"-{re}")
            )
        cosine, sine = (self.type.literal(each) for each in (cos, sin))
        if abs(abs(cos) - abs(sin)) < 1e-9:
            cosine = self.type.literal(math.sqrt(0.5))
            less, more = f"({re} - {im}) * {cosine}", f"({re} + {im}) * {cosine}"
            pairs = {(1, 1): (less, more), (1, -1): (more, f"({im} - {re}) * {cosine}")}
            pairs[-1, 1] = (f"-({more})", less)
            pairs[-1, -1] = (f"({im} - {re}) * {cosine}", f"-({more})")
            return self.complex_variable(*pairs[1 if cos > 0 else -1, 1 if sin > 0 else -1])
        return self.complex_variable(
            f"{re} * {cosine} - {im} * {sine}", f"{re} * {sine} + {im} * {cosine}"
        )

    def add(self, first: Complex, second: Complex) -> Complex:
        """Return the sum of two complex numbers: ``v4 = v0 + v2`` and ``v5 = v1 + v3``."""
        (re, im), (other_re, other_im) = first, second
        return self.complex_variable(f"{re} + {other_re}", f"{im} + {other_im}")

    def subtract(self, first: Complex, second: Complex) -> Complex:
        """Return the difference of two complex numbers."""
        (re, im), (other_re, other_im) = first, second
        return self.complex_variable(f"{re} - {other_re}", f"{im} - {other_im}")

    def transform(self, numbers: Sequence[Complex]) -> list[Complex]:
        """Return the transform of ``numbers``: by two factors, or by ``prime`` if the length is a
        prime."""
        length = len(numbers)
        if length == 1:
            return list(numbers)
        if length == 2:
            return [self.add(*numbers), self.subtract(*numbers)]
        factor = next(
            (factor for factor in (2, 3) if length % factor == 0 and length > factor), length
        )
        return self.prime(numbers) if factor == length else self.product(numbers, factor)

    def product(self, x: Sequence[Complex], radix: int) -> list[Complex]:
        """Return the transform of ``x`` by transforms of ``radix`` elements and of the ``rest``.

        The length is ``radix * rest``, as in Cooley and Tukey.
        """
        length, rest = len(x), len(x) // radix
        rows = [self.transform(x[offset::rest]) for offset in range(rest)]  # [j2][k1]
        result = list(x)
        for k1 in range(radix):
            column = [self.rotated(rows[offset][k1], offset * k1, length) for offset in range(rest)]
            result[k1::radix] = self.transform(column)
        return result

    def prime(self, x: Sequence[Complex]) -> list[Complex]:
        """Return the transform of a prime length.

        Sums and differences of the elements q and n - q take half of the multiplications.
        """
        length, half = len(x), len(x) // 2
        sums = [self.add(x[q], x[length - q]) for q in range(1, half + 1)]
        differences = [self.subtract(x[q], x[length - q]) for q in range(1, half + 1)]
        total = x[0]
        for each in sums:
            total = self.add(total, each)
        result = [total] * length
        for k in range(1, half + 1):
            angles = [roots(np.asarray(k * q), length, self.sign) for q in range(1, half + 1)]
            cos = [self.type.literal(float(root[0])) for root in angles]
            sin = [self.type.literal(float(root[1])) for root in angles]
            even = self.complex_variable(
                *(self._dot(x[0][part], cos, [pair[part] for pair in sums]) for part in (0, 1))
            )
            odd = self.complex_variable(
                *(self._dot("", sin, [pair[part] for pair in differences]) for part in (1, 0))
            )
            result[k] = self.complex_variable(f"{even[0]} - {odd[0]}", f"{even[1]} + {odd[1]}")
            result[length - k] = self.complex_variable(
                f"{even[0]} + {odd[0]}", f"{even[1]} - {odd[1]}"
            )
        return result

    @staticmethod
    def _dot(start: str, factors: Sequence[str], values: Sequence[str]) -> str:
        """Return the C of ``start`` plus the sum of products of ``factors`` and ``values``."""
        terms = [f"{factor} * {value}" for factor, value in zip(factors, values, strict=True)]
        return " + ".join([start, *terms] if start else terms)


def step(radix: int, type_: CType, lanes: int, sign: int) -> tuple[str, str]:
    """Return name and text of the C function of one step; ``w`` is NULL without twiddle factors."""
    name = f"fourier_step_{radix}_{type_.name}_{'back' if sign > 0 else 'forth'}"
    text = (
        _looped_body(radix, type_, lanes, sign)
        if radix > 13
        else _unrolled_body(radix, type_, lanes, sign)
    )
    head = f"""static void {name}(const {type_.name} *restrict x, {type_.name} *restrict y,
    const {type_.name} *restrict w, ptrdiff_t left, ptrdiff_t done)
"""
    return name, head + text


def _unrolled_body(radix: int, type_: CType, lanes: int, sign: int) -> str:
    """Return the body of a step whose small transform is unrolled."""
    codelet = _Codelet(type_, sign)
    loaded = [
        codelet.complex_variable(f"from[{row} * row + l]", f"from[{row} * row + {lanes} + l]")
        for row in range(radix)
    ]
    results = codelet.transform(loaded)
    block, body = 2 * lanes, "".join(f"                {line}\n" for line in codelet.lines)
    plain, twiddled = "", ""
    for frequency, (re, im) in enumerate(results):
        at, imaginary = f"to[{frequency} * step + l]", f"to[{frequency} * step + {lanes} + l]"
        store = f"                {at} = {re};\n                {imaginary} = {im};\n"
        plain += store
        if frequency:
            cosine, sine = f"twiddle[{2 * frequency - 2}]", f"twiddle[{2 * frequency - 1}]"
            store = f"                {at} = {re} * {cosine} - {im} * {sine};\n"
            store += f"                {imaginary} = {re} * {sine} + {im} * {cosine};\n"
        twiddled += store
    return f"""{{
    const ptrdiff_t row = left * done * {block}, step = done * {block};
    for (ptrdiff_t d = 0; d < done; ++d) {{
        const {type_.name} *const from = x + d * {block};
        {type_.name} *const to = y + d * {block};
        LANES_APART
        for (ptrdiff_t l = 0; l < {lanes}; ++l) {{
{body}{plain}        }}
    }}
    for (ptrdiff_t j = 1; j < left; ++j) {{
        const {type_.name} *const twiddle = w + j * {2 * (radix - 1)};
        for (ptrdiff_t d = 0; d < done; ++d) {{
            const {type_.name} *const from = x + (j * done + d) * {block};
            {type_.name} *const to = y + (j * {radix} * done + d) * {block};
            LANES_APART
            for (ptrdiff_t l = 0; l < {lanes}; ++l) {{
{body}{twiddled}            }}
        }}
    }}
}}
"""


def _looped_body(prime: int, type_: CType, lanes: int, sign: int) -> str:
    """Return the body of a step of a large prime, by loops that compute the sums of
    ``_Codelet.prime``.
    """
    half, block, c_type = prime // 2, 2 * lanes, type_.name
    tables = _root_tables(prime, type_, sign)
    sums = _sums_of_pairs(prime, lanes, c_type)
    results = _results_of_pairs(prime, lanes, c_type)
    return f"""{{
{tables}    const ptrdiff_t row = left * done * {block}, step = done * {block};
    for (ptrdiff_t j = 0; j < left; ++j)
        for (ptrdiff_t d = 0; d < done; ++d) {{
            const {c_type} *const from = x + (j * done + d) * {block};
            {c_type} *const to = y + (j * {prime} * done + d) * {block};
            {c_type} sums[{half * block}], rest[{half * block}], total[{block}];
{sums}{results}        }}
}}
"""


def _root_tables(prime: int, type_: CType, sign: int) -> str:
    """Return the C of the cosines and sines of a prime length: ``static const float cosines[9] =
    {...};``.
    """
    half = prime // 2
    frequencies = np.arange(1, half + 1)
    cos, sin = roots(np.outer(frequencies, frequencies), prime, sign).reshape(2, -1)
    return "".join(
        f"    static const {type_.name} {name}[{half * half}] = {{\n        "
        + ", ".join(type_.literal(float(number)) for number in values)
        + "};\n"
        for name, values in (("cosines", cos), ("sines", sin))
    )


def _sums_of_pairs(prime: int, lanes: int, c_type: str) -> str:
    """Return the C of the sums and differences of the elements q + 1 and n - 1 - q, and of the
    result 0, the ``total``.
    """
    half, block = prime // 2, 2 * lanes
    return f"""\
            for (ptrdiff_t l = 0; l < {block}; ++l)
                total[l] = from[l];
            for (ptrdiff_t q = 0; q < {half}; ++q) {{
                const {c_type} *const a = from + (q + 1) * row;
                const {c_type} *const b = from + ({prime - 1} - q) * row;
                for (ptrdiff_t l = 0; l < {block}; ++l) {{
                    sums[q * {block} + l] = a[l] + b[l];
                    rest[q * {block} + l] = a[l] - b[l];
                    total[l] += sums[q * {block} + l];
                }}
            }}
            for (ptrdiff_t l = 0; l < {block}; ++l)
                to[l] = total[l];
"""


def _results_of_pairs(prime: int, lanes: int, t: str) -> str:
    """Return the C of the results k + 1 and n - 1 - k.

    Both come from an ``even`` part, the cosines times the sums, and an ``odd`` part, the sines
    times the differences. They are stored as ``low`` and ``high``, times their twiddle factors.
    """
    half, block = prime // 2, 2 * lanes
    return f"""\
            for (ptrdiff_t k = 0; k < {half}; ++k) {{
                {t} even[{block}], odd[{block}];
                for (ptrdiff_t l = 0; l < {block}; ++l) {{
                    even[l] = from[l];
                    odd[l] = 0;
                }}
                for (ptrdiff_t q = 0; q < {half}; ++q) {{
                    const {t} c = cosines[k * {half} + q], s = sines[k * {half} + q];
                    for (ptrdiff_t l = 0; l < {block}; ++l) {{
                        even[l] += c * sums[q * {block} + l];
                        odd[l] += s * rest[q * {block} + l];
                    }}
                }}
                {t} c = 1, s = 0, e = 1, f = 0;
                if (left > 1) {{
                    const {t} *const twiddle = w + j * {2 * (prime - 1)};
                    c = twiddle[2 * k], s = twiddle[2 * k + 1];
                    e = twiddle[2 * ({prime - 2} - k)], f = twiddle[2 * ({prime - 2} - k) + 1];
                }}
                {t} *const low = to + (k + 1) * step, *const high = to + ({prime - 1} - k) * step;
                LANES_APART
                for (ptrdiff_t l = 0; l < {lanes}; ++l) {{
                    const {t} re = even[l] - odd[{lanes} + l], im = even[{lanes} + l] + odd[l];
                    const {t} er = even[l] + odd[{lanes} + l], ei = even[{lanes} + l] - odd[l];
                    low[l] = re * c - im * s;
                    low[{lanes} + l] = re * s + im * c;
                    high[l] = er * e - ei * f;
                    high[{lanes} + l] = er * f + ei * e;
                }}
            }}
"""
