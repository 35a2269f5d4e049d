"""``smelt.ComplexQR``: unitary and triangular factors of complex matrices, by parts.

Reflections make the diagonal of the triangle real, as LAPACK's ``geqrf`` does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import map_matrices, smaller_dim
from smelt.operators.linalg.complex_operands import complex_of, parts_of
from smelt.operators.linalg.matrices import (
    column,
    in_double,
    index_grid,
    ints,
    largest,
    matrices_of,
    product,
    row,
    size,
    smaller,
    total,
    transposed,
)


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return types of the parts of the unitary factor, then of the triangle."""
    shape, dtype = parts_of(inputs, "ComplexQR")
    if shape is None:
        return [Result(dtype, None)] * 4
    *batch, rows, columns = shape.dims
    inner = rows if attributes["full_matrices"] else smaller_dim(rows, columns)
    unitary = Result(dtype, ir.Shape([*batch, rows, inner]))
    triangle = Result(dtype, ir.Shape([*batch, inner, columns]))
    return [unitary, unitary, triangle, triangle]


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return Q and R by LAPACK's ``geqrf`` and ``ungqr``, each as real and imaginary part."""
    re, im = present(inputs)
    rows, columns = re.shape[-2:]
    full = bool(attributes["full_matrices"])
    inner = rows if full else min(rows, columns)

    def factor(re: np.ndarray, im: np.ndarray) -> list[np.ndarray]:
        """Return the parts of Q and R of one matrix."""
        q, r = np.linalg.qr(complex_of(re, im), mode="complete" if full else "reduced")
        return [part for matrix in (q, r) for part in (matrix.real, matrix.imag)]

    shapes = ((rows, inner),) * 2 + ((inner, columns),) * 2
    return map_matrices(
        factor, shapes=shapes, dtypes=(re.dtype,) * 4, arrays=(re, im), ranks=(2, 2)
    )


def steps(m: Nodes, attributes: Attributes, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
    """Build the parts of Q and of R, reflection by reflection.

    Step k applies ``1 - conj(tau) v v^H`` to the matrix, and its adjoint to Q from the right. The
    parts of ``conj(tau) v`` are ``scaled_re`` and ``scaled_im``:

        a = a - conj(tau) v (v^H a)
        q = q - (q v) (conj(tau) v)^H
    """
    row_index, column_index = index_grid(m, re)
    rows = size(m, re, -2)
    count = smaller(m, rows, size(m, re, -1))
    zeros = matrices_of(m, re, rows, rows, 0.0)
    q_row, q_column = index_grid(m, zeros)
    identity = zeros + m.where(m.equal(q_row, q_column), 1.0, 0.0)

    def step(k: Tensor, re: Tensor, im: Tensor, q_re: Tensor, q_im: Tensor) -> tuple[Tensor, ...]:
        """Apply the reflection of column ``k`` to the matrix and to the factor Q."""
        vector_re, vector_im, scaled_re, scaled_im = _reflection(
            m, column(m, re, k), column(m, im, k), row_index, k
        )
        vector_re_row, vector_im_row = transposed(m, vector_re), transposed(m, vector_im)
        product_re = product(m, vector_re_row, re) + product(m, vector_im_row, im)
        product_im = product(m, vector_re_row, im) - product(m, vector_im_row, re)
        re, im = (
            re - (scaled_re * product_re - scaled_im * product_im),
            im - (scaled_re * product_im + scaled_im * product_re),
        )
        scaled_re_row, scaled_im_row = transposed(m, scaled_re), transposed(m, scaled_im)
        product_re = product(m, q_re, vector_re) - product(m, q_im, vector_im)
        product_im = product(m, q_re, vector_im) + product(m, q_im, vector_re)
        return (
            re,
            im,
            q_re - (product_re * scaled_re_row + product_im * scaled_im_row),
            q_im - (product_im * scaled_re_row - product_re * scaled_im_row),
        )

    re, im, q_re, q_im = m.repeat(count, step, (re, im, identity, zeros))
    re, im = m.where(row_index <= column_index, re, 0.0), m.where(row_index < column_index, im, 0.0)
    if attributes["full_matrices"]:
        return q_re, q_im, re, im
    end = m.op("Unsqueeze", count, ints(m, 0))

    def first(part: Tensor, axis: int) -> Tensor:
        """Return the first rows or columns of ``part``, one for each reflection."""
        return m.op("Slice", part, ints(m, 0), end, ints(m, axis))

    return first(q_re, -1), first(q_im, -1), first(re, -2), first(im, -2)


def _reflection(
    m: Nodes, column_re: Tensor, column_im: Tensor, row_index: Tensor, k: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Build the parts of ``v`` and of ``conj(tau) v``, as LAPACK's ``larfg``.

    ``1 - conj(tau) v v^H`` maps the column x, from row ``k`` on, to the real number beta in row
    ``k`` and zeros below. The column is first divided by its largest part. ``head_re`` and
    ``head_im`` are the parts of x[k]:

        beta = -sign(real(x[k])) * norm(x)
        tau = (beta - x[k]) / beta
        v[k] = 1, v[k+1:] = x[k+1:] / (x[k] - beta)

    A column that is real in row ``k`` and 0 below is unchanged: tau is 0.
    """
    column_re = m.where(row_index >= k, column_re, 0.0)
    column_im = m.where(row_index >= k, column_im, 0.0)
    scale = m.op("Max", largest(m, column_re), largest(m, column_im))
    scale = m.where(scale > 0.0, scale, 1.0)
    column_re, column_im = column_re / scale, column_im / scale
    squares = column_re * column_re + column_im * column_im
    head_re, head_im = row(m, column_re, k), row(m, column_im, k)
    is_real_already = m.equal(total(m, m.where(row_index > k, squares, 0.0), -2), 0.0) & m.equal(
        head_im, 0.0
    )
    norm = m.sqrt(total(m, squares, -2))
    beta = m.where(head_re < 0.0, norm, -norm)
    divisor = m.where(is_real_already, 1.0, beta)
    tau_re = m.where(is_real_already, 0.0, (beta - head_re) / divisor)
    tau_im = m.where(is_real_already, 0.0, -head_im / divisor)
    head_re = m.where(is_real_already, 1.0, head_re - beta)
    head_im = m.where(is_real_already, 0.0, head_im)
    length = head_re * head_re + head_im * head_im
    is_below, top = row_index > k, m.where(m.equal(row_index, k), 1.0, 0.0)
    vector_re = m.where(is_below, (column_re * head_re + column_im * head_im) / length, top)
    vector_im = m.where(is_below, (column_im * head_re - column_re * head_im) / length, 0.0)
    return (
        vector_re,
        vector_im,
        tau_re * vector_re + tau_im * vector_im,
        tau_re * vector_im - tau_im * vector_re,
    )


OPERATOR = Operator(
    domain="smelt",
    name="ComplexQR",
    summary="Unitary and triangular factors of complex matrices, by parts",
    inputs=("real", "imaginary"),
    outputs=("q_real", "q_imaginary", "r_real", "r_imaginary"),
    attributes=(Attribute("full_matrices", ir.AttributeType.INT, 0),),
    infer=infer,
    reference=reference,
    body=in_double(steps, 2, 2),
    opset=18,
)
