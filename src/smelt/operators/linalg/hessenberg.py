"""``smelt.Hessenberg`` and ``smelt.Tridiagonal``: reduction by reflections, packed as in LAPACK.

``Hessenberg`` reflects ``a`` [..., n, n] from both sides to zeros below its first subdiagonal; the
vectors of the reflections ``I - tau v v^T`` are stored in place of the zeros. A symmetric matrix
becomes tridiagonal. ``Tridiagonal`` reads one triangle, and leaves the other unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_square, map_matrices
from smelt.operators.linalg.matrices import (
    column,
    count_to,
    in_double,
    index_grid,
    ints,
    matrices_of,
    product,
    size,
    total,
    transposed,
)
from smelt.operators.linalg.qr import ints_scalar, reflection

BACKWARD = -(2**63)
"""The end of a backward Slice that includes the first element."""


def _infer(name: str, shapes: Callable[[Dim, Dim], list[list[Dim]]]) -> Callable[..., list[Result]]:
    """Return the type rule of an operator on square matrices, given the shapes of its results."""

    def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
        """Return the types; raises ValueError for a missing operand."""
        (a,) = inputs
        if a is None:
            raise ValueError(f"{name} takes one operand")
        check_square(a, name)
        if a.shape is None:
            return [Result(a.dtype, None) for _ in shapes(1, 1)]
        *batch, _, n = a.shape.dims
        one_less = (
            max(n - 1, 0) if isinstance(n, int) else ir.SymbolicDim(n.value and f"max({n} - 1, 0)")
        )
        return [Result(a.dtype, ir.Shape([*batch, *dims])) for dims in shapes(n, one_less)]

    return infer


def hessenberg_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the packed form and the taus by LAPACK's ``gehrd``."""
    from scipy.linalg.lapack import get_lapack_funcs

    (a,) = present(inputs)
    n = a.shape[-1]
    (gehrd,) = get_lapack_funcs(("gehrd",), dtype=a.dtype)

    def reduce(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return packed form and taus of one matrix."""
        packed, taus, _ = gehrd(matrix)
        return packed, taus[: n - 1]

    return map_matrices(
        reduce, shapes=((n, n), (max(n - 1, 0),)), dtypes=(a.dtype,) * 2, arrays=(a,), ranks=(2,)
    )


def tridiagonal_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the packed form, both diagonals and the taus by LAPACK's ``sytrd``."""
    from scipy.linalg.lapack import get_lapack_funcs

    (a,) = present(inputs)
    n, lower = a.shape[-1], attributes["lower"]
    (sytrd,) = get_lapack_funcs(("sytrd",), dtype=a.dtype)

    def reduce(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return packed form, diagonals and taus of one matrix."""
        return tuple(sytrd(matrix, lower=lower)[:4])

    less = (max(n - 1, 0),)
    return map_matrices(
        reduce, shapes=((n, n), (n,), less, less), dtypes=(a.dtype,) * 4, arrays=(a,), ranks=(2,)
    )


def hessenberg_steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build the packed form and the taus, reflection by reflection."""
    return reduced(m, a)


def tridiagonal_steps(m: Nodes, attributes: Attributes, a: Tensor) -> tuple[Tensor, ...]:
    """Build the packed form, both diagonals and the taus.

    They come from the Hessenberg form of the symmetric matrix. An upper triangle is processed in
    reverse order of rows and columns.
    """
    lower = bool(attributes["lower"])
    source = a if lower else _backward(m, a, -2, -1)
    row_index, column_index = index_grid(m, source)
    triangle = m.where(row_index >= column_index, source, 0.0)
    mirrored = transposed(m, m.where(m.equal(row_index, column_index), 0.0, triangle))
    reduced_to, taus = reduced(m, triangle + mirrored)
    packed = m.where(row_index >= column_index, reduced_to, source)
    count = m.op("Unsqueeze", size(m, taus, -1), ints(m, 0))
    diagonal = total(m, m.where(m.equal(row_index, column_index), packed, 0.0), -2)
    side = total(m, m.where(m.equal(row_index, column_index + 1), packed, 0.0), -2)
    side = m.op("Slice", side, ints(m, 0), count, ints(m, -1))
    rows = [m.op("Squeeze", each_row, ints(m, -2)) for each_row in (diagonal, side)]
    if lower:
        return packed, *rows, taus
    return _backward(m, packed, -2, -1), *(_backward(m, row, -1) for row in (*rows, taus))


def reduced(m: Nodes, a: Tensor) -> tuple[Tensor, Tensor]:
    """Build the packed Hessenberg form, and one tau for each column but the last."""
    row_index, column_index = index_grid(m, a)
    count = m.op("Max", size(m, a, -1) - 1, ints_scalar(m, 0))
    taus = m.op("Squeeze", matrices_of(m, a, ints_scalar(m, 1), count, 0.0), ints(m, -2))
    indexes = count_to(m, count)

    def step(k: Tensor, a: Tensor, taus: Tensor) -> tuple[Tensor, ...]:
        """Clear column ``k`` below the subdiagonal by a reflection from both sides."""
        x = column(m, a, k)
        vector, tau, beta = reflection(m, m.where(row_index > k, x, 0.0), row_index, k + 1)
        # Columns up to k hold vectors, which no reflection may change.
        open_part = m.where(column_index > k, a, 0.0)
        reflected_from_right = open_part - tau * product(m, open_part, vector) * transposed(
            m, vector
        )
        both = reflected_from_right - tau * vector * product(
            m, transposed(m, vector), reflected_from_right
        )
        reflected_column = m.where(
            m.equal(row_index, k + 1), beta, m.where(row_index > k + 1, vector, x)
        )
        a = m.where(column_index > k, both, m.where(m.equal(column_index, k), reflected_column, a))
        tau_of_column = m.op("Squeeze", tau, ints(m, -1))
        return a, m.where(m.equal(indexes, k), tau_of_column, taus)

    a, taus = m.repeat(count, step, (a, taus))
    return a, taus


def _backward(m: Nodes, a: Tensor, *axes: int) -> Tensor:
    """Return ``a`` in reverse order along ``axes``."""
    starts, ends = ints(m, *[-1] * len(axes)), ints(m, *[BACKWARD] * len(axes))
    return m.op("Slice", a, starts, ends, ints(m, *axes), starts)


OPERATORS = (
    Operator(
        domain="smelt",
        name="Hessenberg",
        summary="Form of Hessenberg, packed with its reflections",
        inputs=("a",),
        outputs=("packed", "taus"),
        infer=_infer("Hessenberg", lambda n, less: [[n, n], [less]]),
        reference=hessenberg_reference,
        body=in_double(hessenberg_steps),
        opset=18,
    ),
    Operator(
        domain="smelt",
        name="Tridiagonal",
        summary="Tridiagonal form of symmetric matrices, packed with its reflections",
        inputs=("a",),
        outputs=("packed", "diagonal", "side", "taus"),
        attributes=(Attribute("lower", ir.AttributeType.INT, 1),),
        infer=_infer("Tridiagonal", lambda n, less: [[n, n], [n], [less], [less]]),
        reference=tridiagonal_reference,
        body=in_double(tridiagonal_steps),
        opset=18,
    ),
)
