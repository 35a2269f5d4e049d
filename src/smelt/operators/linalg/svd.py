"""``smelt.SVD`` and ``smelt.SingularValues``: ``a = u @ diag(s) @ vt``, s descending.

``full_matrices`` gives square u and vt, else they have a column and a row per value. A matrix that
is not finite gives NaN. Signs of vector pairs, and vectors of equal values, are not determined.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_matrices, map_matrices, smaller_dim
from smelt.operators.linalg.jacobi import SWEEPS, partners, rotated_columns, rotation, rounds_of
from smelt.operators.linalg.matrices import (
    in_double,
    index_grid,
    ints,
    largest,
    matrices_of,
    size,
    smaller,
    total,
    transposed,
)
from smelt.operators.linalg.qr import factor, product_steps

EPS = 2.0**-52


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the types of s, u and vt."""
    shape = check_matrices(inputs[0], "SVD")
    assert inputs[0] is not None
    dtype = inputs[0].dtype
    if shape is None:
        return (Result(dtype, None),) * 3
    *batch, rows, columns = shape.dims
    count = smaller_dim(rows, columns)
    full = attributes.get("full_matrices", 0)
    shapes = [count], [rows, rows if full else count], [columns if full else count, columns]
    return tuple(Result(dtype, ir.Shape([*batch, *dims])) for dims in shapes)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return s, u and vt by LAPACK's ``gesdd``; NaN for a matrix that is not finite."""
    (a,) = present(inputs)
    rows, columns = a.shape[-2:]
    count, full = min(rows, columns), bool(attributes.get("full_matrices", 0))
    shapes = (count,), (rows, rows if full else count), (columns if full else count, columns)

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return s, u and vt of one matrix."""
        if not np.isfinite(matrix).all():
            return tuple(np.full(shape, np.nan) for shape in shapes)
        u, s, vt = np.linalg.svd(matrix, full_matrices=full)
        return s, u, vt

    return map_matrices(decompose, shapes=shapes, dtypes=(a.dtype,) * 3, arrays=(a,), ranks=(2,))


def steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build s, u and vt from the rotated columns.

    u is Q of the QR factors of the columns, with signs: so it is orthogonal even where columns
    vanish.
    """
    s, columns, v, failed = _orthogonalize(m, a)
    packed, taus, _ = factor(m, columns, pivoting=False)
    rows, count = size(m, a, -2), size(m, columns, -1)
    row_index, column_index = index_grid(m, packed)
    heads = total(m, m.where(m.equal(row_index, column_index), packed, 0.0), -2)
    signs = m.where(heads < 0.0, -1.0, 1.0)
    if attributes["full_matrices"]:
        zero_columns = matrices_of(m, a, rows, rows - count, 0.0)
        packed = m.op("Concat", packed, zero_columns, axis=-1)
        positive = matrices_of(m, a, count * 0 + 1, rows - count, 1.0)
        signs = m.op("Concat", signs, positive, axis=-1)
    else:
        v = _first_columns(m, v, count)
    (u,) = product_steps(m, attributes, packed, taus)
    u, v = m.where(failed, math.nan, u * signs), m.where(failed, math.nan, v)
    return m.op("Squeeze", s, ints(m, -2)), u, transposed(m, v)


def values_steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build the singular values, which are the norms of the rotated columns."""
    return (m.op("Squeeze", _orthogonalize(m, a)[0], ints(m, -2)),)


def _orthogonalize(m: Nodes, a: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return ``(values, orthogonal columns, right vectors, mask of failures)`` by rotations.

    Columns are sorted by descending norm, and as many as there are values. The mask marks matrices
    that failed. M. Hestenes, "Inversion of matrices by biorthogonalization and related results"
    (1958). Two columns count as orthogonal by the test of LAPACK's ``gesvj``, or if their product
    is below rounding errors.
    """
    scale = largest(m, a)
    usable = scale < math.inf
    scale = m.where(usable & (scale > 0.0), scale, 1.0)
    a = m.where(usable, a / scale, 0.0)
    height, count = size(m, a, -2), size(m, a, -1)
    rounds = rounds_of(m, count)
    limit = rounds * SWEEPS
    tolerance = m.sqrt(m.op("Cast", height, to=int(ir.DataType.DOUBLE))) * EPS
    noise = total(m, a * a, -2, -1) * (EPS * EPS)

    def step(
        round_number: Tensor, quiet_rounds: Tensor, a: Tensor, right: Tensor
    ) -> tuple[Tensor, ...]:
        """Rotate the pairs of one round.

        ``quiet_rounds`` counts the last rounds without a rotation.
        """
        partner = partners(m, count, m.op("Mod", round_number, rounds))
        norms = total(m, a * a, -2)
        partner_norms = m.op("Gather", norms, partner, axis=-1)
        products = total(m, a * m.op("Gather", a, partner, axis=-1), -2)
        is_rotated = m.abs(products) > m.sqrt(norms) * m.sqrt(partner_norms) * tolerance + noise
        cosine, sine = rotation(
            m, norms, partner_norms, m.where(is_rotated, products, 0.0), partner
        )
        has_no_partner = m.equal(partner, m.op("Range", 0, count, 1))
        has_rotated = m.any(is_rotated & ~has_no_partner)
        quiet_rounds = m.where(has_rotated, quiet_rounds * 0, quiet_rounds + 1)
        rotated_a = rotated_columns(m, a, cosine, sine, partner)
        rotated_v = rotated_columns(m, right, cosine, sine, partner)
        return round_number + 1, quiet_rounds, rotated_a, rotated_v

    zeros = matrices_of(m, a, count, count, 0.0)
    row_index, column_index = index_grid(m, zeros)
    start = (count * 0, count * 0, a, zeros + m.where(m.equal(row_index, column_index), 1.0, 0.0))

    def go_on(round_number: Tensor, quiet_rounds: Tensor, *_: Tensor) -> Tensor:
        """True until all pairs were quiet for one cycle of rounds, or the limit is reached."""
        return (quiet_rounds < rounds) & (round_number < limit)

    _, quiet_rounds, a, right = m.loop(go_on, step, start)
    lengths = m.sqrt(total(m, a * a, -2))
    top_count = m.op("Unsqueeze", count, ints(m, 0))
    values, order = m.ops("TopK", lengths, top_count, outputs=2, axis=-1, largest=1, sorted=1)
    value_count = smaller(m, height, count)
    failed = ~usable | (quiet_rounds < rounds)
    values = m.where(failed, math.nan, _first_columns(m, values * scale, value_count))
    return (
        values,
        _first_columns(m, _ordered(m, a, order), value_count),
        _ordered(m, right, order),
        failed,
    )


def _ordered(m: Nodes, a: Tensor, order: Tensor) -> Tensor:
    """Return the columns of ``a`` in this order."""
    return m.op("GatherElements", a, m.op("Expand", order, m.op("Shape", a)), axis=-1)


def _first_columns(m: Nodes, a: Tensor, count: Tensor) -> Tensor:
    """Return the first ``count`` columns."""
    return m.op("Slice", a, ints(m, 0), m.op("Unsqueeze", count, ints(m, 0)), ints(m, -1))


OPERATORS = (
    Operator(
        domain="smelt",
        name="SVD",
        summary="Singular values, descending, and their vectors",
        inputs=("a",),
        outputs=("s", "u", "vt"),
        attributes=(Attribute("full_matrices", ir.AttributeType.INT, 0),),
        infer=infer,
        reference=reference,
        body=in_double(steps),
        opset=18,
    ),
    Operator(
        domain="smelt",
        name="SingularValues",
        summary="Singular values, descending",
        inputs=("a",),
        outputs=("s",),
        infer=lambda inputs, attributes: infer(inputs, attributes)[:1],
        reference=lambda inputs, attributes: reference(inputs, attributes)[:1],
        body=in_double(values_steps),
        opset=18,
    ),
)
