"""DFT and STFT as products with matrices of roots of unity.

A length that is a product is taken apart (Cooley and Tukey 1965): n * (a + b) products instead of
n * n for n = a * b.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir.sizes import dim_product
from smelt.program.lower.arrays import Array, Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers

NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
WHOLE = 64
"""Lengths up to which one matrix does it all."""
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
    shape, parts, kept = x.shape[:-1], m.size(x, -1), x.dtype
    if length < 1 or 0 in x.shape:
        raise m.cx.refuse("a transform of no elements")
    x = x.cast(ir.DataType.FLOAT) if kept in NARROW else x
    rank = len(shape)
    perm = [i for i in range(rank) if i != axis] + [axis]
    rows = [shape[i] for i in perm[:-1]]
    flat = x.transpose(rank, *perm).reshape(parts, dim_product(rows), shape[axis])
    pair = [_fitted(m, flat.rows(i, i + 1, 0), length) for i in range(parts)]
    given: Pair = (pair[0], pair[1] if parts == 2 else None)
    if inverse and onesided:
        given = _mirrored(m, given, length)
    real, imaginary = _transformed(m, given, length, 1.0 if inverse else -1.0)
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
    return result.transpose(*back, 0).cast(kept)


def _fitted(m: Steps, part: Array, length: int) -> Array:
    """[M, n] cut or filled with zeros to ``length``."""
    rows, count = part.shape[1], m.size(part, 2)
    part = part.reshape(rows, count)
    if count > length:
        return part.rows(0, length, 1)
    if count == length:
        return part
    return m.concat([part, m.constant(0, part.dtype).expand(rows, length - count)], 1)


def _mirrored(m: Steps, pair: Pair, length: int) -> Pair:
    """All of a spectrum from its first half: the rest is the conjugate, seen from the end.

    The imaginary parts of what is its own conjugate count for nothing.
    """
    k = np.arange(length)
    places = m.constant(np.minimum(k, length - k))
    sign = np.where(k <= length - k, 1.0, -1.0)
    sign[(k == 0) | (2 * k == length)] = 0.0
    real, imaginary = pair
    if imaginary is None:
        return real.gather(places, 1), None
    turned = m.op(
        "Where", m.constant(sign == 0, ir.DataType.BOOL), 0.0, imaginary.gather(places, 1)
    )
    return real.gather(places, 1), turned * m.constant(sign, real.dtype)


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
