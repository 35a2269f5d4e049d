"""Rotations of two adjacent rows and columns of complex matrices, which keep eigenvalues.

A complex array has an axis of 2 for its parts: matrices are ``[batch, 2, rows, columns]``, and a
number per matrix is ``[batch, 2, 1, 1]``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.matrices import index_grid, ints, transposed


class Complex(NamedTuple):
    """Complex numbers by their parts, ``[batch, 1, 1, 1]`` each."""

    re: Tensor
    im: Tensor


class Form(NamedTuple):
    """``vectors^H a vectors`` of a matrix ``a``, and the vectors as rows."""

    matrix: Tensor
    rows: Tensor


def element(m: Nodes, a: Tensor, row: Tensor, column: Tensor) -> Complex:
    """Return the elements at ``row`` and ``column``, rank-0 integers, of each matrix."""
    row, column = (m.op("Unsqueeze", place, ints(m, 0)) for place in (row, column))
    return parts(m, m.op("Gather", m.op("Gather", a, row, axis=-2), column, axis=-1))


def parts(m: Nodes, number: Tensor) -> Complex:
    """Return the complex ``number`` of each matrix, split into its parts."""
    return Complex(*m.ops("Split", number, outputs=2, axis=1, num_outputs=2))


def times(x: Complex, y: Complex) -> Complex:
    """Return the product of two complex numbers."""
    return Complex(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re)


def square_root(m: Nodes, z: Complex) -> Complex:
    """Return a square root of the complex number ``z``."""
    length = m.sqrt(z.re * z.re + z.im * z.im)
    re = m.sqrt(m.op("Max", (length + z.re) * 0.5, 0.0))
    im = m.sqrt(m.op("Max", (length - z.re) * 0.5, 0.0))
    return Complex(re, m.where(z.im < 0.0, -im, im))


def rotated(m: Nodes, form: Form, p: Tensor, x: Complex, y: Complex) -> Form:
    """Return ``form`` with rows ``p`` and ``p + 1`` rotated so that ``(x, y)`` becomes ``(r, 0)``.

    ``p`` is a rank-0 integer. Where ``y`` is 0, nothing changes. The first coefficient is real: G.
    Golub and C. Van Loan, "Matrix Computations", 5.1.13.
    """
    x_size, y_size = m.abs(x.re) + m.abs(x.im), m.abs(y.re) + m.abs(y.im)
    is_unchanged = m.equal(y_size, 0.0)
    scale = m.where(x_size > y_size, x_size, y_size)
    scale = m.where(scale > 0.0, scale, 1.0)
    x, y = (Complex(z.re / scale, z.im / scale) for z in (x, y))
    x_length, y_square = m.sqrt(x.re * x.re + x.im * x.im), y.re * y.re + y.im * y.im
    length = m.sqrt(x_length * x_length + y_square)
    length = m.where(is_unchanged, 1.0, length)
    is_zero = m.equal(x_length, 0.0)
    divisor = m.where(is_zero, 1.0, x_length) * length
    phase = Complex(m.where(is_zero, 1.0, x.re) / divisor, m.where(is_zero, 0.0, x.im) / divisor)
    cosine = m.where(is_unchanged, 1.0, x_length / length)
    # The sine is phase * conj(y). Rows hold real and imaginary parts by turns.
    sine_re = phase.re * y.re + phase.im * y.im
    sine_im = phase.im * y.re - phase.re * y.im
    zero = cosine - cosine
    numbers = [
        *(cosine, sine_re, zero, -sine_im),
        *(-sine_re, cosine, -sine_im, zero),
        *(zero, sine_im, cosine, sine_re),
        *(sine_im, zero, -sine_re, cosine),
    ]
    flat = m.op("Concat", *numbers, axis=-1)
    rotation = m.op("Reshape", flat, ints(m, -1, 4, 4))
    signs = np.kron([[1.0, -1.0], [-1.0, 1.0]], np.ones((2, 2)))
    conjugate = rotation * m.tensor(m.builder.constant(signs))
    matrix = _rows_times(m, form.matrix, p, rotation)
    matrix = transposed(m, _rows_times(m, transposed(m, matrix), p, conjugate))
    return Form(matrix, _rows_times(m, form.rows, p, conjugate))


def _rows_times(m: Nodes, a: Tensor, p: Tensor, rotation: Tensor) -> Tensor:
    """Return ``a`` with its rows ``p`` and ``p + 1`` multiplied from the left by ``rotation``."""
    first = m.op("Unsqueeze", p, ints(m, 0))
    pair = m.op("Gather", a, m.op("Concat", first, first + 1, axis=0), axis=-2)
    parts_of_rows = m.op("Concat", ints(m, -1, 4), m.op("Shape", a, start=-1), axis=0)
    flat = m.op("Reshape", pair, parts_of_rows)
    rotated = m.op("Reshape", m.op("MatMul", rotation, flat), m.op("Shape", pair))
    upper, lower = m.ops("Split", rotated, outputs=2, axis=-2, num_outputs=2)
    row_index = index_grid(m, a)[0]
    result: Tensor = m.where(
        m.equal(row_index, p), upper, m.where(m.equal(row_index, p + 1), lower, a)
    )
    return result
