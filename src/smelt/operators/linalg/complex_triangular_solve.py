"""``smelt.ComplexTriangularSolve``: ``TriangularSolve`` of complex numbers, given by their parts.

``a`` is [..., m, m] with the batch dims of ``b``, which is [..., m, n] if ``left_side``, else [...,
n, m]. ``conjugate_a`` conjugates ``a``. A zero on the diagonal gives NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators import triangular_solve
from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.complex_operands import complex_of, parts_of
from smelt.operators.linalg.matrices import (
    column,
    in_double,
    index_grid,
    product,
    row,
    size,
    transposed,
    zeros_like,
)


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return the type of ``b`` for each part of the solution."""
    parts_of(inputs[:2], "ComplexTriangularSolve", square=True)
    parts_of(inputs[2:], "ComplexTriangularSolve")
    a_re, b_re = inputs[0], inputs[2]
    return [*triangular_solve.infer((a_re, b_re), attributes)] * 2


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return both parts of the solution, substituted row by row for the whole batch."""
    a_re, a_im, b_re, b_im = present(inputs)
    a = complex_of(a_re, -a_im if attributes["conjugate_a"] else a_im)
    (x,) = triangular_solve.reference((a, complex_of(b_re, b_im)), attributes)
    return np.ascontiguousarray(x.real), np.ascontiguousarray(x.imag)


def steps(
    m: Nodes, attributes: Attributes, a_re: Tensor, a_im: Tensor, b_re: Tensor, b_im: Tensor
) -> tuple[Tensor, ...]:
    """Build both parts of the solution row by row; divisors are scaled by their larger part
    first."""
    lower, left = bool(attributes["lower"]), bool(attributes["left_side"])
    a, b = (a_re, -a_im if attributes["conjugate_a"] else a_im), (b_re, b_im)
    # x @ m = b  is  m^T @ x^T = b^T
    if bool(attributes["transpose_a"]) == left:
        a, lower = (transposed(m, a[0]), transposed(m, a[1])), not lower
    if not left:
        b = transposed(m, b[0]), transposed(m, b[1])
    columns = index_grid(m, a[0])[1]
    row_index = index_grid(m, b[0])[0]
    count = size(m, a[0], -1)

    def step(k: Tensor, x_re: Tensor, x_im: Tensor) -> tuple[Tensor, ...]:
        """Compute one row of the solution: ``x[i] = (b[i] - a[i, known] @ x[known]) / a[i, i]``."""
        i = k if lower else count - 1 - k
        is_known = columns < i if lower else columns > i
        known_re, known_im = (m.where(is_known, row(m, part, i), 0.0) for part in a)
        solved_re = row(m, b[0], i) - product(m, known_re, x_re) + product(m, known_im, x_im)
        solved_im = row(m, b[1], i) - product(m, known_re, x_im) - product(m, known_im, x_re)
        if not attributes["unit_diagonal"]:
            diagonal_re, diagonal_im = (column(m, row(m, part, i), i) for part in a)
            scale = m.op("Max", m.op("Abs", diagonal_re), m.op("Abs", diagonal_im))
            unit_re, unit_im = diagonal_re / scale, diagonal_im / scale
            divisor = scale * (unit_re * unit_re + unit_im * unit_im)
            solved_re, solved_im = (
                (solved_re * unit_re + solved_im * unit_im) / divisor,
                (solved_im * unit_re - solved_re * unit_im) / divisor,
            )
        in_row = m.equal(row_index, i)
        return m.where(in_row, solved_re, x_re), m.where(in_row, solved_im, x_im)

    x, y = m.repeat(count, step, (zeros_like(m, b[0]), zeros_like(m, b[0])))
    return (x, y) if left else (transposed(m, x), transposed(m, y))


OPERATOR = Operator(
    domain="smelt",
    name="ComplexTriangularSolve",
    summary="Solution of a triangular system of complex numbers, by parts",
    inputs=("a_real", "a_imaginary", "b_real", "b_imaginary"),
    outputs=("x_real", "x_imaginary"),
    attributes=(
        *triangular_solve.OPERATOR.attributes,
        Attribute("conjugate_a", ir.AttributeType.INT, 0),
    ),
    infer=infer,
    reference=reference,
    body=in_double(steps, 2, 2, 2, 2),
    opset=18,
)
