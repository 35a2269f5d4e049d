"""The standard form of a real block of two rows: triangular, or with equal diagonal elements.

A rotation produces it; the off-diagonal elements then have different signs if the eigenvalues are a
conjugate pair. After LAPACK's ``dlanv2``.
"""

from __future__ import annotations

from typing import NamedTuple

from smelt.operators.formula import Nodes, Tensor


class Block(NamedTuple):
    """``[[a, b], [c, d]]``, and the cosine and sine of the rotation that produced it."""

    a: Tensor
    b: Tensor
    c: Tensor
    d: Tensor
    cosine: Tensor
    sine: Tensor


def standard(m: Nodes, a: Tensor, b: Tensor, c: Tensor, d: Tensor, precision: float) -> Block:
    """Return the standard form of ``[[a, b], [c, d]]``.

    Eigenvalues that differ by less than ``precision`` count as equal.
    """
    zero = a * 0.0
    one = zero + 1.0
    general = _general(m, a, b, c, d, precision)
    unchanged = Block(a, b, c, d, one, zero)
    swapped = Block(d, -c, zero, a, zero, one)
    is_standard = m.equal(a, d) & m.op("Xor", b < 0.0, c < 0.0)
    block = _where(m, is_standard, unchanged, general)
    block = _where(m, m.equal(b, 0.0), swapped, block)
    return _where(m, m.equal(c, 0.0), unchanged, block)


def _where(m: Nodes, mask: Tensor, x: Block, y: Block) -> Block:
    """Return ``x`` where ``mask`` is true, else ``y``, element by element of the blocks."""
    return Block(
        *(
            m.where(mask, true_entry, false_entry)
            for true_entry, false_entry in zip(x, y, strict=True)
        )
    )


def _general(m: Nodes, a: Tensor, b: Tensor, c: Tensor, d: Tensor, precision: float) -> Block:
    """Return the standard form of a block with nonzero off-diagonal elements.

    The eigenvalues are real and distinct if ``half^2 + b c``, divided by ``scale``, exceeds 4
    ``precision``.
    """
    half = (a - d) * 0.5
    larger, smaller = (
        m.op("Max", m.abs(b), m.abs(c)),
        m.op("Min", m.abs(b), m.abs(c)),
    )
    signed_smaller = m.where(m.op("Xor", b < 0.0, c < 0.0), -smaller, smaller)
    scale = m.op("Max", m.abs(half), larger)
    discriminant = half / scale * half + larger / scale * signed_smaller
    real = _distinct_real(
        m, (a, b, c, d), half, m.sqrt(scale) * m.sqrt(m.abs(discriminant)), larger * signed_smaller
    )
    return _where(m, discriminant >= 4.0 * precision, real, _pair_or_equal(m, a, b, c, d))


def _distinct_real(
    m: Nodes, block: tuple[Tensor, ...], half: Tensor, root: Tensor, product: Tensor
) -> Block:
    """Return the triangular form of a block with distinct real eigenvalues.

    ``half`` is ``(a - d) / 2``, ``product`` is ``b * c``, ``root`` is ``sqrt(half^2 + b * c)``.
    """
    _, b, c, d = block
    z = half + _with_sign(m, root, half)
    length = m.sqrt(c * c + z * z)
    return Block(d + z, b - c, c * 0.0, d - product / z, z / length, c / length)


def _pair_or_equal(m: Nodes, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Block:
    """Return the form of a block whose eigenvalues are a conjugate pair or nearly equal.

    A rotation by ``cosine`` and ``sine`` makes the diagonal elements equal, to ``middle``. If the
    other two elements have the same sign, the eigenvalues are real, and a second rotation makes the
    block triangular. As LAPACK's ``dlanv2``.
    """
    difference, sigma = a - d, b + c
    hypotenuse = m.sqrt(sigma * sigma + difference * difference)
    hypotenuse = m.where(hypotenuse > 0.0, hypotenuse, 1.0)
    cosine = m.sqrt(0.5 * (1.0 + m.abs(sigma) / hypotenuse))
    sine = -_with_sign(m, 0.5 * difference / (hypotenuse * cosine), sigma)
    rotated_a, rotated_b, rotated_c, rotated_d = (
        a * cosine + b * sine,
        b * cosine - a * sine,
        c * cosine + d * sine,
        d * cosine - c * sine,
    )
    b, c = rotated_b * cosine + rotated_d * sine, rotated_c * cosine - rotated_a * sine
    middle = 0.5 * (
        (rotated_a * cosine + rotated_c * sine) + (rotated_d * cosine - rotated_b * sine)
    )
    pair = Block(middle, b, c, middle, cosine, sine)
    root_b, root_c = m.sqrt(m.abs(b)), m.sqrt(m.abs(c))
    root_of_product = _with_sign(m, root_b * root_c, c)
    sums = m.abs(b + c)
    inverse_root = 1.0 / m.sqrt(m.where(sums > 0.0, sums, 1.0))
    cosine_of_split, slope = root_b * inverse_root, root_c * inverse_root
    split = Block(
        *(middle + root_of_product, b - c, c * 0.0, middle - root_of_product),
        *(cosine * cosine_of_split - sine * slope, cosine * slope + sine * cosine_of_split),
    )
    swapped = Block(middle, -c, c * 0.0, middle, -sine, cosine)
    same_sign = ~m.op("Xor", b < 0.0, c < 0.0)
    result = _where(m, same_sign, split, pair)
    result = _where(m, m.equal(b, 0.0), swapped, result)
    return _where(m, m.equal(c, 0.0), pair, result)


def _with_sign(m: Nodes, size: Tensor, other: Tensor) -> Tensor:
    """Return ``size`` times the sign of ``other``."""
    signed: Tensor = m.where(other < 0.0, -size, size)
    return signed
