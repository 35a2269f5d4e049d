"""DFT and STFT as products with matrices of roots of unity.

A length that is a product is taken apart (Cooley and Tukey 1965): n * (a + b) products instead of
n * n for n = a * b. Where nothing lies before the axis, the parts of a transform stay columns of
matrices, so that only whole rows of what is done are moved between its steps (Stockham).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.sizes import dim_product
from smelt.program.instruction import Dim
from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
WHOLE = 64
"""Lengths up to which one matrix does it all."""
STEP = 16
"""The largest factor of a longer one: products that are few, and steps that are."""
LARGEST = 2048
"""The largest prime factor of a length, whose matrix is a constant."""

Pair = tuple[Array, "Array | None"]
"""Real and imaginary parts [M, n]; None where there are none."""


@lowers("DFT")
def dft(cx: ProgramBuilder, node: ir.Node) -> None:
    """[..., n, ..., 1 or 2]: along ``axis``, cut or filled with zeros to ``dft_length``."""
    m = Steps(cx)
    x = m.array(node.inputs[0])
    given = cx.ints(node, "axis", 2)
    first = -2 if cx.opset >= 20 else 1
    axis = cx.axis(given[0] if given else first, len(x.shape))
    if axis == len(x.shape) - 1:
        raise cx.refuse("a transform along the dim of real and imaginary parts")
    inverse, onesided = (
        node.attributes.get_int("inverse", 0),
        node.attributes.get_int("onesided", 0),
    )
    asked = cx.ints(node, "dft_length", 1)
    count = m.size(x, axis)
    whole = 2 * (count - 1) if inverse and onesided else count
    length = asked[0] if asked else whole
    result = transform(m, x, axis, length, inverse=bool(inverse), onesided=bool(onesided))
    m.give(node.outputs[0], result)


def transform(
    m: Steps, x: Array, axis: int, length: int, *, inverse: bool, onesided: bool
) -> Array:
    """The transform along ``axis`` of real and imaginary parts in the last dim."""
    shape, kept = x.shape[:-1], x.dtype
    if length < 1 or 0 in x.shape:
        raise m.cx.refuse("a transform of no elements")
    x = x.cast(ir.DataType.FLOAT) if kept in NARROW else x
    way = _by_columns if _has_steps(length) and _leads(shape, axis) else _by_rows
    return way(m, x, axis, length, inverse=inverse, onesided=onesided).cast(kept)


def _has_steps(length: int) -> bool:
    """True if a length is a product, and too long for one matrix."""
    factors = _factors(length)
    return length > WHOLE and len(factors) > 1 and max(factors) <= LARGEST


def _leads(shape: Sequence[Dim], axis: int) -> bool:
    """True if the sizes are known, and no dim before the axis has more than one element."""
    known = all(isinstance(dim, int) for dim in shape)
    return known and all(dim == 1 for dim in shape[:axis])


def _by_rows(m: Steps, x: Array, axis: int, length: int, *, inverse: bool, onesided: bool) -> Array:
    """Rows of real and of imaginary parts: what is transformed is the last dim."""
    shape, parts = x.shape[:-1], m.size(x, -1)
    rank = len(shape)
    perm = [i for i in range(rank) if i != axis] + [axis]
    rows = [shape[i] for i in perm[:-1]]
    every = dim_product(rows)
    flat = _fitted(m, x.transpose(rank, *perm).reshape(parts, every, shape[axis]), 2, length)
    if inverse and onesided:
        flat = _mirrored(m, flat, 2, length)
    pair = [flat.rows(i, i + 1, 0).reshape(every, length) for i in range(parts)]
    sign = 1.0 if inverse else -1.0
    given: Pair = (pair[0], pair[1] if parts == 2 else None)
    real, imaginary = _transformed(m, given, length, sign)
    count = length // 2 + 1 if onesided and not inverse else length
    both = [real] if inverse and onesided else [real, imaginary]
    kept_parts = [
        (part.rows(0, count, 1) if count < length else part).reshape(1, *rows, count)
        for part in both
    ]
    result = m.concat(kept_parts, 0) if len(kept_parts) > 1 else kept_parts[0]
    if inverse:
        result = result / length
    back = [1 + perm.index(i) for i in range(rank)]
    return result.transpose(*back, 0)


def _by_columns(
    m: Steps, x: Array, axis: int, length: int, *, inverse: bool, onesided: bool
) -> Array:
    """A length that is a product, in steps; rows are the last dim, so that vectors hold some of
    them, or of what is done. With dims before the axis, they would have to be moved there."""
    shape, parts = x.shape[:-1], m.size(x, -1)
    rank = len(shape)
    perm = [axis] + [i for i in range(rank) if i != axis]
    rows = [shape[i] for i in perm[1:]]
    lines = x.transpose(rank, *perm).reshape(parts, shape[axis], dim_product(rows))
    lines = _fitted(m, lines, 1, length)
    if inverse and onesided:
        lines = _mirrored(m, lines, 1, length)
    result = _in_steps(m, lines, length, 1.0 if inverse else -1.0)
    count = length
    if inverse and onesided:
        result = result.rows(0, 1, 0)
    elif onesided:
        count = length // 2 + 1
        result = result.rows(0, count, 1)
    if inverse:
        result = result / length
    back = [1 + perm.index(i) for i in range(rank)]
    return result.reshape(result.shape[0], count, *rows).transpose(*back, 0)


def _in_steps(m: Steps, x: Array, length: int, sign: float) -> Array:
    """The sums of ``x[j] * exp(sign * 2i * pi * j * k / n)`` over j, for each k: [2, n, rows] of
    [1 or 2, n, rows].

    A factor ``a`` of n = a * b at a time: with j = j1 * b + j2 and k = k1 + a * k2, sums over j1
    first, then turned. What is done goes behind what is left: [b, a, rows] is [j2, (k1, rows)].
    """
    rows, left = x.shape[2], length
    done: Dim = rows
    for a in _factors(length):
        b = left // a
        parts = m.size(x, 0)
        matrix = _roots(a, a, a, sign)
        whole = np.block([[matrix.real, -matrix.imag], [matrix.imag, matrix.real]])
        times = m.constant(whole[:, : parts * a], x.dtype)
        y = m.dot("kj,jc->kc", times, x.reshape(parts * a, b * done)).reshape(2, a, b, done)
        if b > 1:
            turn = _roots(a, b, left, sign).reshape(1, a, b, 1)
            cos, sin = m.constant(turn.real, x.dtype), m.constant(turn.imag, x.dtype)
            real, imaginary = y.rows(0, 1, 0), y.rows(1, 2, 0)
            turned = [real * cos - imaginary * sin, real * sin + imaginary * cos]
            y = m.concat(turned, 0).transpose(0, 2, 1, 3)
        done = a * done
        x = y.reshape(2, b, done)
        left = b
    return x.reshape(2, length, rows)


def _fitted(m: Steps, x: Array, axis: int, length: int) -> Array:
    """``axis`` cut or filled with zeros to ``length``."""
    count = m.size(x, axis)
    if count > length:
        return x.rows(0, length, axis)
    if count == length:
        return x
    missing = [length - count if i == axis else dim for i, dim in enumerate(x.shape)]
    return m.concat([x, m.constant(0, x.dtype).expand(*missing)], axis)


def _mirrored(m: Steps, x: Array, axis: int, length: int) -> Array:
    """All of a spectrum [1 or 2, ...] from its first half: the rest is the conjugate, seen from the
    end.

    The imaginary parts of what is its own conjugate count for nothing.
    """
    k = np.arange(length)
    x = x.gather(m.constant(np.minimum(k, length - k)), axis)
    if m.size(x, 0) == 1:
        return x
    sign = np.ones((2, length))
    sign[1] = np.where(k <= length - k, 1.0, -1.0)
    sign[1, (k == 0) | (2 * k == length)] = 0.0
    sign = sign.reshape([2, *(length if i == axis else 1 for i in range(1, len(x.shape)))])
    return m.op("Where", m.constant(sign == 0, ir.DataType.BOOL), 0.0, x) * m.constant(
        sign, x.dtype
    )


def _factors(length: int) -> list[int]:
    """Numbers up to ``STEP``, and larger primes, whose product is ``length``."""
    found, left, prime = [1], length, 2
    while left > 1:
        if prime * prime > left:
            prime = left
        if left % prime:
            prime += 1
        elif found[-1] * prime <= STEP or found == [1]:
            found[-1] *= prime
            left //= prime
        else:
            found.append(prime)
            left //= prime
    return found


def _transformed(m: Steps, pair: Pair, length: int, sign: float) -> tuple[Array, Array]:
    """The sums of ``x[j] * exp(sign * 2i * pi * j * k / n)`` over j, for each k."""
    outer = _factor(length)
    if length <= WHOLE or outer == length:
        if length > LARGEST:
            raise m.cx.refuse(f"a length with the prime factor {length}")
        roots = _roots(length, length, length, sign)
        return _times(m, "mj,jk->mk", pair, roots, pair[0].dtype)
    inner = length // outer
    rows = pair[0].shape[0]
    # j = j1 * inner + j2 and k = k1 + outer * k2: first over j1, turn, then over j2.
    split = [None if x is None else x.reshape(rows, outer, inner) for x in pair]
    assert split[0] is not None
    first = (split[0], split[1])
    dtype = pair[0].dtype
    real, imaginary = _times(m, "mab,ak->mbk", first, _roots(outer, outer, outer, sign), dtype)
    turn = _roots(inner, outer, length, sign)
    cos, sin = m.constant(turn.real, dtype), m.constant(turn.imag, dtype)
    real, imaginary = real * cos - imaginary * sin, real * sin + imaginary * cos
    lines = [part.transpose(0, 2, 1).reshape(rows * outer, inner) for part in (real, imaginary)]
    done = _transformed(m, (lines[0], lines[1]), inner, sign)
    real, imaginary = (
        part.reshape(rows, outer, inner).transpose(0, 2, 1).reshape(rows, length) for part in done
    )
    return real, imaginary


def _factor(length: int) -> int:
    """The divisor that is nearest to the root from below; ``length`` itself if it is prime."""
    for divisor in range(math.isqrt(length), 1, -1):
        if length % divisor == 0:
            return divisor
    return length


def _roots(rows: int, columns: int, length: int, sign: float) -> np.ndarray:
    products = np.outer(np.arange(rows), np.arange(columns)) % length
    angle = sign * 2 * np.pi * products / length
    return np.asarray(np.cos(angle) + 1j * np.sin(angle))


def _times(
    m: Steps, equation: str, pair: Pair, matrix: np.ndarray, dtype: ir.DataType
) -> tuple[Array, Array]:
    """A complex product."""
    real, imaginary = pair
    cos, sin = m.constant(matrix.real, dtype), m.constant(matrix.imag, dtype)
    found, turned = m.dot(equation, real, cos), m.dot(equation, real, sin)
    if imaginary is None:
        return found, turned
    return (
        found - m.dot(equation, imaginary, sin),
        turned + m.dot(equation, imaginary, cos),
    )


@lowers("STFT")
def stft(cx: ProgramBuilder, node: ir.Node) -> None:
    """The DFT of windows of a signal [batch, n, 1 or 2], ``frame_step`` apart.

    ONNX Runtime takes a real signal without its last dim, too, and exporters write it.
    """
    m = Steps(cx)
    signal = m.array(node.inputs[0])
    if len(signal.shape) == 2:
        signal = signal.reshape(*signal.shape, 1)
    if len(signal.shape) != 3:
        raise cx.refuse(f"a signal of rank {len(signal.shape)}")
    step, given = cx.ints(node, "frame_step", 1), cx.ints(node, "frame_length", 3)
    weights = cx.input(node, 2)
    window = m.array(weights) if weights is not None else None
    count, parts = signal.shape[1], m.size(signal, 2)
    length = given[0] if given else m.sizes(window)[0] if window else m.size(signal, 1)
    if not step or step[0] < 1 or length < 1 or (isinstance(count, int) and length > count):
        raise cx.refuse("frames that do not fit the signal")
    if window is not None and m.sizes(window)[0] != length:
        raise cx.refuse("a window of another length than the frames")
    frames = (count - length) // step[0] + 1
    places = m.numbers(frames).reshape(frames, 1) * step[0] + m.constant(np.arange(length))
    cut = signal.gather(places, 1)
    if window is not None:
        cut = cut * window.reshape(length, 1)
    onesided = bool(node.attributes.get_int("onesided", 1))
    if onesided and parts == 2:
        raise cx.refuse("half of the spectrum of a complex signal")
    m.give(node.outputs[0], transform(m, cut, 2, length, inverse=False, onesided=onesided))
