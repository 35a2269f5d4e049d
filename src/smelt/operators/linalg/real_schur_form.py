"""The real form of Schur of general matrices, as a function body: reflections, then QR steps."""

from __future__ import annotations

import math

from smelt.operators.declare import Attributes
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.linalg.francis_steps import Chased, real_schur
from smelt.operators.linalg.matrices import (
    column,
    ints,
    largest,
    places,
    product,
    size,
    transposed,
)
from smelt.operators.linalg.qr import ints_scalar, reflection


def schur_steps(
    m: Nodes, attributes: Attributes, a: Tensor, precision: float
) -> tuple[Tensor, ...]:
    """The form, then the vectors as columns."""
    form, vectors, scale = real_schur_form(m, a, precision)
    found = form * scale, vectors * (scale / scale)
    ends = ints(m, -1, -1)
    return tuple(m.op("Slice", each, ints(m, 0, 0), ends, ints(m, -2, -1)) for each in found)


def real_schur_form(m: Nodes, a: Tensor, precision: float) -> tuple[Tensor, Tensor, Tensor]:
    """The form and the vectors of ``[n, n]`` or ``[batch, n, n]``, scaled to at most 1, the scale.

    The scale is NaN where a matrix is not finite or steps do not end. The form and the vectors
    have a row and a column of zeros more. Matrices of a batch, which holds one at least, are done
    one after the other: each has as many steps as it needs.
    """
    scale = largest(m, a)
    usable = scale < math.inf
    scale = m.where(usable & (scale > 0.0), scale, 1.0)
    matrix = m.op("Pad", m.where(usable, a / scale, 0.0), ints(m, 0, 0, 1, 1), 0.0, ints(m, -2, -1))
    count = size(m, a, -1)
    assert a.value.shape is not None
    if len(a.value.shape) == 2:
        done, failed = _decomposed(m, matrix, count, precision)
        return *done, m.where(failed | ~usable, math.nan, scale)
    batch = size(m, a, -3)
    number = m.op("Unsqueeze", m.op("Range", 0, batch, 1), ints(m, 1, 2))

    def one(i: Tensor, forms: Tensor, vectors: Tensor, scales: Tensor) -> tuple[Tensor, ...]:
        done, failed = _decomposed(m, m.op("Gather", matrix, i), count, precision)
        here = m.equal(number, i)
        scales = m.where(here & failed, math.nan, scales)
        return *(m.where(here, x, y) for x, y in zip(done, (forms, vectors), strict=True)), scales

    start = matrix, matrix, m.where(usable, scale, math.nan)
    forms, vectors, scale = m.repeat(batch, one, start)
    return forms, vectors, scale


def _decomposed(m: Nodes, matrix: Tensor, count: Tensor, precision: float) -> tuple[Chased, Tensor]:
    """``matrix``, ``[n + 1, n + 1]``, and whether that has failed."""
    r, c = places(m, matrix)
    one = matrix * 0.0 + m.where(m.equal(r, c), 1.0, 0.0)

    def step(k: Tensor, form: Tensor, vectors: Tensor) -> tuple[Tensor, ...]:
        v, tau, beta = reflection(m, m.where(r > k, column(m, form, k), 0.0), r, k + 1)
        vt = transposed(m, v)
        form = form - tau * v * product(m, vt, form)
        form = form - product(m, form, v) * (tau * vt)
        own = m.equal(c, k)
        form = m.where(own & m.equal(r, k + 1), beta, m.where(own & (r > k + 1), 0.0, form))
        return form, vectors - product(m, vectors, v) * (tau * vt)

    turns = m.op("Max", count - 2, ints_scalar(m, 0))
    form, vectors = matrix.m.repeat(turns, step, (matrix, one))
    return real_schur(m, form, vectors, count, precision)
