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
    return map_matrices(factor, shapes, (re.dtype,) * 4, (re, im), (2, 2))


def steps(m: Nodes, attributes: Attributes, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
    """Build the parts of Q and of R, reflection by reflection.

    Step k applies ``1 - conj(tau) v v^H`` to the matrix, and its adjoint to Q from the right.
    """
    r, c = index_grid(m, re)
    rows = size(m, re, -2)
    count = smaller(m, rows, size(m, re, -1))
    none = matrices_of(m, re, rows, rows, 0.0)
    p, q = index_grid(m, none)
    identity = none + m.where(m.equal(p, q), 1.0, 0.0)

    def step(k: Tensor, re: Tensor, im: Tensor, x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        """Apply the reflection of column ``k`` to the matrix and to the factor Q."""
        v, w, a, b = _reflection(m, column(m, re, k), column(m, im, k), r, k)
        vt, wt = transposed(m, v), transposed(m, w)
        along = product(m, vt, re) + product(m, wt, im)
        across = product(m, vt, im) - product(m, wt, re)
        re, im = re - (a * along - b * across), im - (a * across + b * along)
        at, bt = transposed(m, a), transposed(m, b)
        along = product(m, x, v) - product(m, y, w)
        across = product(m, x, w) + product(m, y, v)
        return re, im, x - (along * at + across * bt), y - (across * at - along * bt)

    re, im, x, y = m.repeat(count, step, (re, im, identity, none))
    re, im = m.where(r <= c, re, 0.0), m.where(r < c, im, 0.0)
    if attributes["full_matrices"]:
        return x, y, re, im
    end = m.op("Unsqueeze", count, ints(m, 0))

    def first(a: Tensor, axis: int) -> Tensor:
        """Return the first rows or columns along ``axis``, as many as there are reflections."""
        return m.op("Slice", a, ints(m, 0), end, ints(m, axis))

    return first(x, -1), first(y, -1), first(re, -2), first(im, -2)


def _reflection(
    m: Nodes, x: Tensor, y: Tensor, r: Tensor, k: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Build the parts of ``v`` and of ``conj(tau) v``, as LAPACK's ``larfg``.

    ``1 - conj(tau) v v^H`` maps the column ``x + iy``, from row ``k`` on, to a real number in row
    ``k`` and zeros below.
    """
    x, y = m.where(r >= k, x, 0.0), m.where(r >= k, y, 0.0)
    scale = m.op("Max", largest(m, x), largest(m, y))
    scale = m.where(scale > 0.0, scale, 1.0)
    x, y = x / scale, y / scale
    squares, re, im = x * x + y * y, row(m, x, k), row(m, y, k)
    is_real_already = m.equal(total(m, m.where(r > k, squares, 0.0), -2), 0.0) & m.equal(im, 0.0)
    norm = m.sqrt(total(m, squares, -2))
    beta = m.where(re < 0.0, norm, -norm)
    safe = m.where(is_real_already, 1.0, beta)
    a = m.where(is_real_already, 0.0, (beta - re) / safe)
    b = m.where(is_real_already, 0.0, -im / safe)
    re, im = m.where(is_real_already, 1.0, re - beta), m.where(is_real_already, 0.0, im)
    length = re * re + im * im
    below, top = r > k, m.where(m.equal(r, k), 1.0, 0.0)
    v = m.where(below, (x * re + y * im) / length, top)
    w = m.where(below, (y * re - x * im) / length, 0.0)
    return v, w, a * v + b * w, a * w - b * v


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
