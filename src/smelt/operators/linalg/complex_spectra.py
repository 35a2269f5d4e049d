"""``smelt.ComplexEigh``, ``smelt.ComplexSVD``, ``smelt.ComplexSingularValues``, by parts.

``a = x + iy`` acts on the parts of vectors as the symmetric ``[[x, -y], [y, x]]``, which has each
eigenvalue twice. From its 2n vectors, the bodies choose n that are orthonormal as complex vectors.
A matrix that is not finite gives NaN. Vectors are determined up to factors of absolute value 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attribute, Attributes, Computed, Operator, Result
from smelt.operators.formula import Nodes, Tensor
from smelt.operators.inputs import present
from smelt.operators.linalg import eigh
from smelt.operators.linalg.batches import map_matrices, smaller_dim
from smelt.operators.linalg.complex_operands import complex_of, parts_of
from smelt.operators.linalg.matrices import (
    column,
    count_to,
    in_double,
    index_grid,
    ints,
    largest,
    matrices_of,
    product,
    size,
    smaller,
    total,
    transposed,
)

Pair: TypeAlias = tuple[Tensor, Tensor]
END = np.iinfo(np.int64).max


def infer_eigh(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return types of the parts of the vectors, then of the values."""
    shape, dtype = parts_of(inputs, "ComplexEigh", square=True)
    values = ir.Shape(shape.dims[:-1]) if shape is not None else None
    return [Result(dtype, shape), Result(dtype, shape), Result(dtype, values)]


def infer_svd(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return types of the values, then of both parts of U and of the adjoint of V."""
    shape, dtype = parts_of(inputs, "ComplexSVD")
    if shape is None:
        return [Result(dtype, None)] * 5
    *batch, rows, columns = shape.dims
    count = smaller_dim(rows, columns)
    full = attributes.get("full_matrices", 0)
    left = Result(dtype, ir.Shape([*batch, rows, rows if full else count]))
    right = Result(dtype, ir.Shape([*batch, columns if full else count, columns]))
    return [Result(dtype, ir.Shape([*batch, count])), left, left, right, right]


def eigh_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return vectors and values by LAPACK's ``heevd`` on the chosen triangle.

    Only the real part of the diagonal counts.
    """
    re, im = present(inputs)
    lower = bool(attributes.get("lower", 1))

    def decompose(re: np.ndarray, im: np.ndarray) -> list[np.ndarray]:
        """Return both parts of the vectors, and the values, of one matrix."""
        a = np.tril(complex_of(re, im)) if lower else np.triu(complex_of(re, im))
        if not np.isfinite(a).all():
            return [np.full(shape, np.nan) for shape in (a.shape, a.shape, a.shape[:1])]
        values, vectors = np.linalg.eigh(a, "L" if lower else "U")
        return [vectors.real, vectors.imag, values]

    shapes = (re.shape[-2:], re.shape[-2:], re.shape[-1:])
    dtypes = (re.dtype,) * 3
    return map_matrices(decompose, shapes=shapes, dtypes=dtypes, arrays=(re, im), ranks=(2, 2))


def svd_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the values and both bases by LAPACK's ``gesdd``."""
    re, im = present(inputs)
    rows, columns = re.shape[-2:]
    count, full = min(rows, columns), bool(attributes.get("full_matrices", 0))
    left, right = (rows, rows if full else count), (columns if full else count, columns)
    shapes = ((count,), left, left, right, right)

    def decompose(re: np.ndarray, im: np.ndarray) -> list[np.ndarray]:
        """Return the values and both parts of both bases of one matrix."""
        a = complex_of(re, im)
        if not np.isfinite(a).all():
            return [np.full(shape, np.nan) for shape in shapes]
        u, s, vt = np.linalg.svd(a, full_matrices=full)
        return [s, u.real, u.imag, vt.real, vt.imag]

    dtypes = (re.dtype,) * 5
    return map_matrices(decompose, shapes=shapes, dtypes=dtypes, arrays=(re, im), ranks=(2, 2))


def eigh_steps(m: Nodes, attributes: Attributes, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
    """Build both parts of the vectors, and the values, from a symmetric matrix of twice the
    size."""
    (re, im), values = _hermitian(m, (re, im), bool(attributes.get("lower", 1)))
    return re, im, m.op("Squeeze", values, ints(m, -2))


def svd_steps(m: Nodes, attributes: Attributes, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
    """Build the singular values and both bases from the eigenvectors of ``[[0, a], [a^H, 0]]``.

    The eigenvalues of that matrix are plus and minus the singular values of ``a``; the upper part
    of an eigenvector is a left singular vector, the lower part a right one. Vectors of negligible
    singular values are replaced by any that complete the basis.
    """
    rows, columns = size(m, re, -2), size(m, re, -1)
    count = smaller(m, rows, columns)
    vectors, sizes = _singular_vectors(m, (re, im), count)
    noise = m.op("Cast", m.op("Max", rows, columns), to=int(ir.DataType.DOUBLE)) * 2.0**-49
    is_kept = sizes > largest(m, sizes) * noise  # rounding mixes the other vectors
    full = bool(attributes.get("full_matrices", 0))
    failed = _any_in_row(m, m.op("IsNaN", sizes))
    bases = []
    for first, length in ((rows * 0, rows), (rows, columns)):
        part = _completed(m, vectors, is_kept, (first, length), length if full else count)
        bases.append([m.where(failed, math.nan, half) for half in part])
    (left, left_im), (right, right_im) = bases
    s = m.op("Squeeze", sizes, ints(m, -2))
    return s, left, left_im, transposed(m, right), -transposed(m, right_im)


def values_steps(m: Nodes, attributes: Attributes, re: Tensor, im: Tensor) -> tuple[Tensor, ...]:
    """Build the singular values as ``svd_steps`` does."""
    count = smaller(m, size(m, re, -2), size(m, re, -1))
    return (m.op("Squeeze", _singular_vectors(m, (re, im), count)[1], ints(m, -2)),)


def _any_in_row(m: Nodes, row: Tensor) -> Tensor:
    """Return, as a 1 by 1 matrix, if any element of each ``row`` is true."""
    return total(m, m.where(row, 1.0, 0.0), -1) > 0.0


def _singular_vectors(m: Nodes, a: Pair, count: Tensor) -> tuple[Pair, Tensor]:
    """Build eigenvectors of ``[[0, a], [a^H, 0]]``, and its ``count`` largest eigenvalues.

    Both are in descending order of the eigenvalues.
    """
    re, im = a
    rows, columns = size(m, re, -2), size(m, re, -1)
    zero_rows = matrices_of(m, re, rows, rows, 0.0)
    zero_columns = matrices_of(m, re, columns, columns, 0.0)
    parts = []
    for part, adjoint in ((re, transposed(m, re)), (im, -transposed(m, im))):
        upper = m.op("Concat", zero_rows, part, axis=-1)
        lower = m.op("Concat", adjoint, zero_columns, axis=-1)
        parts.append(m.op("Concat", upper, lower, axis=-2))
    (vectors_re, vectors_im), values = _hermitian(m, (parts[0], parts[1]), lower=True)
    vectors_re, vectors_im, values = (
        _slice(m, array, -1, -END, -1, -1) for array in (vectors_re, vectors_im, values)
    )
    end = m.op("Unsqueeze", count, ints(m, 0))
    largest_values = m.op("Slice", values, ints(m, 0), end, ints(m, -1))
    return (vectors_re, vectors_im), m.where(largest_values < 0.0, 0.0, largest_values)


def _completed(
    m: Nodes, vectors: Pair, is_kept: Tensor, part: tuple[Tensor, Tensor], count: Tensor
) -> Pair:
    """Build part of each kept vector, completed by unit vectors to an orthonormal basis.

    ``part`` is the first row and the number of rows of the part; ``count`` the number of columns.
    """
    start, length = (m.op("Unsqueeze", number, ints(m, 0)) for number in part)
    stop = m.op("Unsqueeze", size(m, is_kept, -1), ints(m, 0))
    halves = []
    for vector in vectors:
        half = m.op("Slice", vector, start, start + length, ints(m, -2))
        halves.append(m.where(is_kept, m.op("Slice", half, ints(m, 0), stop, ints(m, -1)), 0.0))
    re, im = halves
    square = total(m, re * re + im * im, -2)
    inverse_norm = 1.0 / m.sqrt(m.where(square > 0.0, square, 1.0))
    zeros = matrices_of(m, re, part[1], part[1], 0.0)
    row_index, column_index = index_grid(m, zeros)
    identity = zeros + m.where(m.equal(row_index, column_index), 1.0, 0.0)
    candidates = (
        m.op("Concat", re * inverse_norm, identity, axis=-1),
        m.op("Concat", im * inverse_norm, zeros, axis=-1),
    )
    return _orthonormal(m, candidates, count)


def _hermitian(m: Nodes, a: Pair, lower: bool) -> tuple[Pair, Tensor]:
    """Build orthonormal eigenvectors as columns, and a row of ascending eigenvalues.

    They come from the symmetric matrix ``[[re, -im], [im, re]]``, which has each eigenvalue twice:
    every second value is taken, and the upper and lower halves of the vectors are the parts of 2n
    candidates for the n vectors. ``lower`` says which triangle of ``a`` is read.
    """
    re, im = a
    row_index, column_index = index_grid(m, re)
    is_read = row_index >= column_index if lower else row_index <= column_index
    re = m.where(is_read, re, transposed(m, re))
    im = m.where(m.equal(row_index, column_index), 0.0, m.where(is_read, im, -transposed(m, im)))
    rows = m.op("Concat", re, -im, axis=-1), m.op("Concat", im, re, axis=-1)
    vectors, doubled_values = eigh.steps(m, {"lower": 1}, m.op("Concat", *rows, axis=-2))
    count = size(m, re, -1)
    half = m.op("Unsqueeze", count, ints(m, 0))
    upper_half = m.op("Slice", vectors, ints(m, 0), half, ints(m, -2))
    lower_half = m.op("Slice", vectors, half, ints(m, END), ints(m, -2))
    values = _slice(m, m.op("Unsqueeze", doubled_values, ints(m, -2)), 0, END, -1, 2)
    has_nan = _any_in_row(m, m.op("IsNaN", values))
    basis = _orthonormal(m, (upper_half, lower_half), count)
    return (m.where(has_nan, math.nan, basis[0]), m.where(has_nan, math.nan, basis[1])), values


def _orthonormal(m: Nodes, candidates: Pair, count: Tensor) -> Pair:
    """Build an orthonormal basis from the first ``count`` columns independent of earlier ones.

    The columns have norm 1 and span the space. So as long as one is missing, some candidate has a
    new component of at least 1 / sqrt(rows); half of that is the threshold.
    """
    double = int(ir.DataType.DOUBLE)
    re, im = candidates
    rows = size(m, re, -2)
    threshold = 0.25 / m.op("Cast", m.op("Max", rows, 1), to=double)
    wanted = m.op("Cast", count, to=double)
    column_numbers = m.op("Cast", count_to(m, count), to=double)
    zeros = matrices_of(m, re, rows, count, 0.0)

    def step(
        k: Tensor, basis_re: Tensor, basis_im: Tensor, count_found: Tensor
    ) -> tuple[Tensor, ...]:
        """Orthogonalize column ``k``; keep it if enough of it is left."""
        column_re, column_im = column(m, re, k), column(m, im, k)
        rows_re, rows_im = transposed(m, basis_re), transposed(m, basis_im)
        for _ in range(2):  # twice, because the first pass leaves rounding errors
            part_re = product(m, rows_re, column_re) + product(m, rows_im, column_im)
            part_im = product(m, rows_re, column_im) - product(m, rows_im, column_re)
            column_re = column_re - product(m, basis_re, part_re) + product(m, basis_im, part_im)
            column_im = column_im - product(m, basis_re, part_im) - product(m, basis_im, part_re)
        square = total(m, column_re * column_re + column_im * column_im, -2)
        accepted = (square > threshold) & (count_found < wanted)
        inverse_norm = 1.0 / m.sqrt(m.where(accepted, square, 1.0))
        is_new = accepted & m.equal(column_numbers, count_found)
        count_found = count_found + m.where(accepted, 1.0, 0.0)
        return (
            m.where(is_new, column_re * inverse_norm, basis_re),
            m.where(is_new, column_im * inverse_norm, basis_im),
            count_found,
        )

    none_found = matrices_of(m, re, count * 0 + 1, count * 0 + 1, 0.0)
    basis_re, basis_im, _ = m.repeat(size(m, re, -1), step, (zeros, zeros, none_found))
    return basis_re, basis_im


def _slice(m: Nodes, a: Tensor, start: int, end: int, axis: int, by: int) -> Tensor:
    """Return a Slice of ``a`` along one ``axis`` with step ``by``."""
    return m.op("Slice", a, ints(m, start), ints(m, end), ints(m, axis), ints(m, by))


FULL = Attribute("full_matrices", ir.AttributeType.INT, 0)
OPERATORS = (
    Operator(
        domain="smelt",
        name="ComplexEigh",
        summary="Eigenvectors and ascending eigenvalues of Hermitian matrices, by parts",
        inputs=("real", "imaginary"),
        outputs=("vectors_real", "vectors_imaginary", "values"),
        attributes=(Attribute("lower", ir.AttributeType.INT, 1),),
        infer=infer_eigh,
        reference=eigh_reference,
        body=in_double(eigh_steps, 2, 2),
        opset=18,
    ),
    Operator(
        domain="smelt",
        name="ComplexSVD",
        summary="Singular values, descending, and vectors of complex matrices, by parts",
        inputs=("real", "imaginary"),
        outputs=("s", "u_real", "u_imaginary", "vt_real", "vt_imaginary"),
        attributes=(FULL,),
        infer=infer_svd,
        reference=svd_reference,
        body=in_double(svd_steps, 2, 2),
        opset=18,
    ),
    Operator(
        domain="smelt",
        name="ComplexSingularValues",
        summary="Singular values of complex matrices, descending",
        inputs=("real", "imaginary"),
        outputs=("s",),
        infer=lambda inputs, attributes: infer_svd(inputs, attributes)[:1],
        reference=lambda inputs, attributes: svd_reference(inputs, attributes)[:1],
        body=in_double(values_steps, 2, 2),
        opset=18,
    ),
)
