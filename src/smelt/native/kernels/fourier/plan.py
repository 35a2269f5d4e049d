"""The plan of a Fourier transform: steps of small factors, or a convolution (Bluestein 1970).

The steps are Stockham's (Cochran et al. 1967): transformed indices move behind the others, so no
final permutation is needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from smelt.native.kernels.fourier.roots import roots

RADICES = (8, 9, 5, 7, 4, 3, 2, 11, 13)
"""Factors with unrolled code, in the order in which they are tried."""
LARGEST = 61
"""The largest prime factor of a step; a larger one takes longer than a convolution."""


@lru_cache(maxsize=256)
def factors(length: int) -> tuple[int, ...]:
    """Return the factors of ``length`` in the order of steps. Primes that ``RADICES`` lacks come
    first.
    """
    unrolled: list[int] = []
    for radix in RADICES:
        while length % radix == 0:
            unrolled.append(radix)
            length //= radix
    # A step of 2 moves much and computes little, so 8 * 2 becomes 4 * 4.
    if unrolled[-1:] == [2] and unrolled[0] == 8:
        unrolled = [*unrolled[1:-1], 4, 4]
    large, prime = [], 17
    while length > 1:
        if prime * prime > length:
            prime = length
        while length % prime == 0:
            large.append(prime)
            length //= prime
        prime += 2
    return (*large, *unrolled)


def is_smooth(length: int) -> bool:
    """True if ``length`` is a product of small factors."""
    return max(factors(length), default=1) <= LARGEST


@lru_cache(maxsize=256)
def convolution_length(length: int, lanes: int) -> int:
    """Return the length of the convolution that transforms ``length`` elements.

    It is at least ``2 * length - 1``. The cheapest of five lengths wins: its cost is one step
    over all elements for each factor, times the ``waste`` of lanes in both ``halves``.
    """
    least = 2 * length - 1
    candidates = []
    for scale in (1, 3, 5, 9, 15):
        quotient = -(-least // scale)
        exponent = (quotient - 1).bit_length()  # 2 ** exponent is the next power of 2
        size = scale << max(2, exponent)  # divisible by 4, so ``halves`` finds factors
        factors_of_row = halves(size, lanes)
        wasted = (
            waste(factors_of_row[0], lanes) * waste(factors_of_row[1], lanes)
            if factors_of_row
            else 1.0
        )
        candidates.append((size * len(factors(size)) * wasted, size))
    return min(candidates)[1]


def halves(length: int, lanes: int) -> tuple[int, int] | None:
    """Return two factors of ``length`` that fill vectors best; None if it has no such factors."""
    if not is_smooth(length):
        return None
    pairs = [
        (factor, length // factor) for factor in range(4, length // 4 + 1) if length % factor == 0
    ]

    def cost(pair: tuple[int, int]) -> tuple[float, int, int]:
        """Return the wasted lanes, then the distance from a square, then the first factor."""
        first, second = pair
        return waste(first, lanes) * waste(second, lanes), abs(first - second), first

    return min(pairs, key=cost, default=None)


def waste(count: int, lanes: int) -> float:
    """Return the number of computed lanes divided by the number of used ones: 1.6 for 5 of 8."""
    return -(-count // lanes) * lanes / count


def twiddles(length: int, sign: int) -> np.ndarray:
    """Return the twiddle factors of all steps, one after the other: [j2][k1 from 1 on][2]."""
    tables, remaining = [np.zeros(0)], length
    for radix in factors(length):
        next_length = remaining // radix
        if next_length > 1:
            products = np.outer(np.arange(next_length), np.arange(1, radix))
            tables.append(np.moveaxis(roots(products, remaining, sign), 0, -1).reshape(-1))
        remaining = next_length
    return np.concatenate(tables)


def half_twiddles(first: int, second: int, sign: int) -> np.ndarray:
    """Return the twiddle factors between both halves of a row: [k1][2][j2]."""
    products = np.outer(np.arange(first), np.arange(second))
    return roots(products, first * second, sign).transpose(1, 0, 2).copy()


@dataclass(frozen=True)
class Chirp:
    """Tables of a transform by a convolution of ``room`` elements.

    ``chirp`` is ``exp(sign * i pi k k / n)`` as [2, n]. ``spectrum`` is the transform of its
    conjugate, padded to ``room`` elements, as [2, room].
    """

    room: int
    chirp: np.ndarray
    spectrum: np.ndarray

    @staticmethod
    def of(length: int, padded: int, sign: int) -> Chirp:
        """Return the tables for transforms of ``length`` elements by ``padded`` ones.

        The convolution reads the chirp's conjugate at indices -(n - 1) to n - 1. It is symmetric,
        and negative indices are at the end of ``ring``.
        """
        k = np.arange(length, dtype=np.int64)
        chirp = roots(k * k % (2 * length), 2 * length, sign)
        ring = np.zeros(padded, np.complex128)
        ring[:length] = chirp[0] - 1j * chirp[1]
        ring[padded - length + 1 :] = ring[1:length][::-1]
        spectrum = np.fft.fft(ring) / padded
        return Chirp(padded, chirp, np.stack([spectrum.real, spectrum.imag]))
