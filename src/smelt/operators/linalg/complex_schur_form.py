"""Function body for the triangular Schur form of complex matrices: rotations in a loop.

First the Hessenberg form, then QR steps with Wilkinson's shift, each matrix of a batch in its own
window between negligible elements. G. Golub and C. Van Loan, "Matrix Computations", 7.5, and
LAPACK's ``zlahqr``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import onnx_ir as ir

from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.balancing import Balanced, balanced, power_of_two
from smelt.operators.linalg.deflation import LEAST, has_small_products
from smelt.operators.linalg.matrices import index_grid, ints, is_finite, largest, size
from smelt.operators.linalg.unitary_rotations import (
    Complex,
    Form,
    element,
    parts,
    rotated,
    square_root,
    times,
)

STEPS = 40
"""QR steps per row after which a matrix counts as not converging; three are usual."""

UNUSUAL = 10
"""After this many steps without an eigenvalue, an exceptional shift is used, as in LAPACK."""


def schur_form(
    m: Nodes, re: Tensor, im: Tensor, precision: float, *, scaling: bool
) -> tuple[Form, Balanced, Tensor]:
    """Build ``(Schur form of the balanced matrix, balancing, scale)``.

    The parts ``re`` and ``im`` are ``[batch, n, n]``; the matrix is divided by ``scale``, a power
    of two, so its elements are less than 2. The scale is NaN for a matrix that is not finite or
    does not converge. The form has an extra row and column of zeros, because ONNX Runtime does not
    reduce empty matrices.
    """
    scale = m.op("Max", largest(m, re), largest(m, im))
    usable = is_finite(m, re) & is_finite(m, im)
    scale = power_of_two(m, m.where(usable & (scale > 0.0), scale, 1.0))
    count = size(m, re, -1)
    scaled = [
        m.op("Pad", m.where(usable, p / scale, 0.0), ints(m, 0, 0, 1, 1), 0.0, ints(m, -2, -1))
        for p in (re, im)
    ]
    balance = balanced(m, scaled, count, scaling=scaling)
    matrix = m.op("Concat", *(m.op("Unsqueeze", p, ints(m, 1)) for p in balance.parts), axis=1)
    row_index, column_index = index_grid(m, matrix)
    identity = m.op("Unsqueeze", m.where(m.equal(row_index, column_index), 1.0, 0.0), ints(m, 0))
    rows = matrix * 0.0 + m.op("Concat", identity, identity * 0.0, axis=0)
    form = _hessenberg(m, Form(matrix, rows), count)
    form, open_still = _triangular(m, form, count, precision)
    failed = m.op("Squeeze", open_still, ints(m, 1))
    matrix = m.where(row_index <= column_index, form.matrix, 0.0)
    return Form(matrix, form.rows), balance, m.where(failed | ~usable, math.nan, scale)


def _hessenberg(m: Nodes, form: Form, count: Tensor) -> Form:
    """Eliminate elements below the first subdiagonal, column by column, from the bottom up."""

    def column(k: Tensor, matrix: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
        """Eliminate the elements of column ``k`` below the first subdiagonal."""

        def step(i: Tensor, matrix: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
            """Rotate two rows so that the lower element of column ``k`` becomes 0."""
            p = count - 2 - i
            pair = element(m, matrix, p, k), element(m, matrix, p + 1, k)
            after = rotated(m, Form(matrix, rows), p, *pair)
            return _cleared(m, after.matrix, p + 1, k), after.rows

        return matrix.m.repeat(count - 2 - k, step, (matrix, rows))

    return Form(*m.repeat(m.op("Max", count - 2, count * 0), column, form))


def _cleared(m: Nodes, matrix: Tensor, row: Tensor, column: Tensor) -> Tensor:
    """Return ``matrix`` with one element set to 0, which a rotation left as a rounding error."""
    row_index, column_index = index_grid(m, matrix)
    cleared: Tensor = m.where(m.equal(row_index, row) & m.equal(column_index, column), 0.0, matrix)
    return cleared


def _triangular(m: Nodes, form: Form, count: Tensor, precision: float) -> tuple[Form, Tensor]:
    """Return ``(triangular form, mask of failures)`` after QR steps on all windows.

    A matrix fails if a window is left after the limit of steps.
    """
    step_count = count * 0
    limit = count * STEPS
    matrix, low, high = _window(m, form.matrix, precision)
    zero = high * 0.0  # one per matrix

    def go_on(
        step_count: Tensor, matrix: Tensor, rows: Tensor, low: Tensor, high: Tensor, stuck: Tensor
    ) -> Tensor:
        """True while a matrix has a window and the limit is not reached."""
        return (high > 0.0) & (step_count < limit)

    def step(
        step_count: Tensor, matrix: Tensor, rows: Tensor, low: Tensor, high: Tensor, stuck: Tensor
    ) -> tuple[Tensor, ...]:
        """Run one QR step on the window of each matrix, then find the next window."""
        shift = _shift(m, matrix, high, stuck)
        start = _start(m, matrix, shift, low, high, precision)
        first, last = _extent(m, start, high)

        def chase(i: Tensor, matrix: Tensor, rows: Tensor) -> tuple[Tensor, ...]:
            """Push the bulge of each window down by a row."""
            active = _ActiveRows(low, start, high)
            return _chase(m, Form(matrix, rows), first + i, active, shift)

        matrix, rows = matrix.m.repeat(last - first, chase, (matrix, rows))
        matrix, low, next_high = _window(m, matrix, precision)
        stuck = m.where(m.equal(next_high, high), stuck + 1.0, 0.0)
        return step_count + 1, matrix, rows, low, next_high, stuck

    start = (step_count, matrix, form.rows, low, high, zero)
    _, matrix, rows, _, high, _ = m.loop(go_on, step, start)
    return Form(matrix, rows), high > 0.0


@dataclass(frozen=True)
class _ActiveRows:
    """The rows from ``low`` to ``high`` of the window; the bulge starts at ``start``."""

    low: Tensor
    start: Tensor
    high: Tensor


def _chase(
    m: Nodes, form: Form, p: Tensor, active: _ActiveRows, shift: Complex
) -> tuple[Tensor, Tensor]:
    """Rotate rows p and p + 1 so that ``(x, y)`` becomes ``(r, 0)``; return matrix and rows.

    At row ``start``, ``(x, y)`` is column p of the shifted matrix, which creates the bulge. Below
    it, ``(x, y)`` is column ``left``, p - 1, which pushes the bulge down by a row; its element in
    row p + 1 is then exactly 0. Outside of its own window, a matrix is unchanged: ``y`` is 0.
    """
    row_number = m.op("Cast", p, to=int(ir.DataType.DOUBLE))
    creates_bulge = m.equal(row_number, active.start) & (active.high > 0.0)
    pushes_bulge = (row_number > active.start) & (row_number < active.high)
    left = m.op("Max", p - 1, p * 0)
    x, y = element(m, form.matrix, p, p), element(m, form.matrix, p + 1, p)
    left_x, left_y = element(m, form.matrix, p, left), element(m, form.matrix, p + 1, left)
    x = Complex(
        *(m.where(creates_bulge, a - b, c) for a, b, c in zip(x, shift, left_x, strict=True))
    )
    y = Complex(
        *(
            m.where(creates_bulge, a, m.where(pushes_bulge, b, 0.0))
            for a, b in zip(y, left_y, strict=True)
        )
    )
    after = rotated(m, form, p, x, y)
    cleared = _cleared(m, after.matrix, p + 1, left)
    left_zero = (row_number > active.low) & (row_number < active.high)
    return m.where(left_zero, cleared, after.matrix), after.rows


def _window(m: Nodes, matrix: Tensor, precision: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``(matrix without negligible subdiagonal elements, first row, last row)``.

    The rows, ``[batch, 1, 1, 1]``, delimit the last block that is not triangular; both are 0 if all
    is triangular. In row r, ``here`` is ``a[r, r]``, ``previous`` is ``a[r-1, r-1]``, ``side_size``
    is ``|a[r, r-1]|`` and ``above_diagonal`` is ``|a[r-1, r]|``. An element left of the diagonal is
    negligible, as in ``zlahqr``, if it is at most ``LEAST``, or if it is small relative to ``here``
    and ``previous`` and ``has_small_products``.
    """
    row_index, column_index = index_grid(m, matrix)
    is_diagonal, is_below = m.equal(row_index, column_index), m.equal(row_index, column_index + 1)

    def size(numbers: Tensor) -> Tensor:
        """Return the sum of the magnitudes of both parts."""
        return _total(m, m.abs(numbers), 1)

    diagonal, superdiagonal = (
        _total(m, m.where(mask, matrix, 0.0), -2)
        for mask in (is_diagonal, m.equal(row_index + 1, column_index))
    )
    here, previous, above_diagonal = (
        _total(m, m.where(mask, line, 0.0), -1)
        for mask, line in (
            (is_diagonal, diagonal),
            (is_below, diagonal),
            (is_diagonal, superdiagonal),
        )
    )
    side = _total(m, m.where(is_below, matrix, 0.0), -1)
    side_size, above_diagonal = m.sqrt(_total(m, side * side, 1)), size(above_diagonal)
    difference, neighbors = size(previous - here), size(here) + size(previous)
    has_small = has_small_products(m, side_size, above_diagonal, size(here), difference, precision)
    is_small = side_size <= m.where(neighbors > 0.0, neighbors, 1.0) * precision
    is_kept = (side_size > LEAST) & ~(is_small & has_small)
    matrix = m.where(is_below & ~is_kept, 0.0, matrix)
    place = m.op("Cast", row_index, to=int(ir.DataType.DOUBLE))
    high = largest(m, m.where(is_kept, place, 0.0))
    low = largest(m, m.where(~is_kept & (place <= high), place, 0.0))
    return matrix, m.where(high > 0.0, low, 0.0), high


def _start(
    m: Nodes, matrix: Tensor, shift: Complex, low: Tensor, high: Tensor, precision: float
) -> Tensor:
    """Return the row at which a QR step begins.

    It is the last row above which two consecutive small elements have a negligible product, or the
    first row of the window.
    """
    row_index, column_index = index_grid(m, matrix)

    def masked(mask: Tensor, a: Tensor, axis: int = -1) -> Tensor:
        """Return the masked elements of ``a``, summed along ``axis``."""
        return _total(m, m.where(mask, a, 0.0), axis)

    def magnitude(a: Tensor) -> Tensor:
        """Return the absolute values of complex numbers."""
        norm: Tensor = m.sqrt(_total(m, a * a, 1))
        return norm

    is_diagonal, is_below = m.equal(row_index, column_index), m.equal(row_index, column_index + 1)
    diagonal = masked(is_diagonal, matrix, -2)
    here = masked(is_diagonal, diagonal)
    next_diagonal = masked(m.equal(row_index + 1, column_index), diagonal)
    subdiagonal = magnitude(masked(is_below, matrix))
    next_subdiagonal = magnitude(masked(is_diagonal, masked(is_below, matrix, -2)))
    distance_to_shift = _total(m, m.abs(here - m.op("Concat", *shift, axis=1)), 1)
    size_of_neighbors = _total(m, m.abs(here) + m.abs(next_diagonal), 1)
    place = m.op("Cast", row_index, to=int(ir.DataType.DOUBLE))
    allowed = (
        (place > low)
        & (place < high)
        & (subdiagonal * next_subdiagonal <= precision * distance_to_shift * size_of_neighbors)
    )
    start: Tensor = m.op("Max", low, largest(m, m.where(allowed, place, 0.0)))
    return start


def _total(m: Nodes, a: Tensor, axis: int) -> Tensor:
    """Return the sum along ``axis``, which is kept with size 1."""
    return m.op("ReduceSum", a, ints(m, axis), keepdims=1)


def _extent(m: Nodes, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return the first and the last row of all windows, as rank-0 integers."""
    last = m.op("ReduceMax", high, keepdims=0)
    first = m.op("ReduceMin", m.where(high > 0.0, low, last), keepdims=0)
    return _as_int64(m, first), _as_int64(m, last)


def _as_int64(m: Nodes, a: Tensor) -> Tensor:
    """Return ``a`` as int64."""
    return m.op("Cast", a, to=int(ir.DataType.INT64))


def _shift(m: Nodes, matrix: Tensor, high: Tensor, stuck: Tensor) -> Complex:
    """Return Wilkinson's shift: the eigenvalue of the last two rows closer to the last element.

    For the last block ``[[a, b], [c, d]]``, and the sign that makes the divisor largest, it is

        half = (a - d) / 2
        d - b c / (half ± sqrt(half^2 + b c))

    Where ``stuck`` steps found no eigenvalue, return an exceptional shift.
    """
    row_index, column_index = index_grid(m, matrix)
    last_row = _as_int64(m, high)

    def entry(up: int, left: int) -> Complex:
        """Return the element ``up`` rows above and ``left`` columns left of the window's last
        one."""
        is_entry = m.equal(row_index, last_row - up) & m.equal(column_index, last_row - left)
        return parts(m, _total(m, _total(m, m.where(is_entry, matrix, 0.0), -1), -2))

    a, b, c, d = entry(1, 1), entry(1, 0), entry(0, 1), entry(0, 0)
    product = times(b, c)
    half = Complex((a.re - d.re) * 0.5, (a.im - d.im) * 0.5)
    square = times(half, half)
    root = square_root(m, Complex(square.re + product.re, square.im + product.im))
    same_direction = half.re * root.re + half.im * root.im >= 0.0
    root = Complex(*(m.where(same_direction, part, -part) for part in root))
    half_plus_root = Complex(half.re + root.re, half.im + root.im)
    length = half_plus_root.re * half_plus_root.re + half_plus_root.im * half_plus_root.im
    is_zero = m.equal(length, 0.0)
    length = m.where(is_zero, 1.0, length)
    conjugate = Complex(half_plus_root.re, -half_plus_root.im)
    quotient = times(product, conjugate)
    steps = (m.where(is_zero, 0.0, part / length) for part in quotient)
    wilkinson = Complex(*(part - step for part, step in zip(d, steps, strict=True)))
    is_stuck = m.equal(m.op("Mod", stuck + 1.0, float(UNUSUAL), fmod=1), 0.0)
    exceptional = Complex(d.re + 0.75 * (m.abs(c.re) + m.abs(c.im)), d.im)
    return Complex(*(m.where(is_stuck, x, y) for x, y in zip(exceptional, wilkinson, strict=True)))
