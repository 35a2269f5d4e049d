"""``smelt.ComplexEig`` and ``smelt.ComplexSchur`` of complex matrices, by LAPACK or rotations.

Matrices are real and imaginary parts, since ONNX computes with real numbers only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.inputs import present
from smelt.operators.lapack.ordinary_scale import ordinary_scale
from smelt.operators.linalg.batches import map_matrices
from smelt.operators.linalg.complex_eigenvectors import complex_eig_steps, schur_steps
from smelt.operators.linalg.complex_operands import complex_of, parts_of
from smelt.operators.linalg.own_precision import in_own_precision

Decomposition = Callable[[np.ndarray], Sequence[np.ndarray]]


def infer_eig(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return types of the parts of the values, then of the left and of the right vectors."""
    shape, dtype = parts_of(inputs, "ComplexEig", square=True)
    values = ir.Shape(shape.dims[:-1]) if shape is not None else None
    return [Result(dtype, values)] * 2 + [Result(dtype, shape)] * 4


def infer_schur(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return types of the parts of the triangular form, then of the vectors."""
    shape, dtype = parts_of(inputs, "ComplexSchur", square=True)
    return [Result(dtype, shape)] * 4


def eig_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return values and vectors by LAPACK's ``geev``; NaN for matrices that are not finite.

    Vectors are columns of length 1.
    """
    from scipy.linalg import eig

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return values, left and right vectors of one matrix, scaled to an ordinary magnitude."""
        shift, parts = ordinary_scale(matrix.real, matrix.imag)
        values, *vectors = eig(complex_of(*parts), left=True, right=True)
        return complex_of(np.ldexp(values.real, shift), np.ldexp(values.imag, shift)), *vectors

    return _parts_of(decompose, inputs, (1, 2, 2))


def schur_reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return form and vectors by LAPACK's ``gees``; NaN for matrices that are not finite."""
    from scipy.linalg import schur

    return _parts_of(lambda matrix: schur(matrix, output="complex"), inputs, (2, 2))


def _parts_of(
    function: Decomposition, inputs: Sequence[np.ndarray | None], ranks: Sequence[int]
) -> tuple[np.ndarray, ...]:
    """Return the real and imaginary part of each result of ``function``, for a stack of matrices.

    ``ranks`` are the ranks of the results: 2 for a square matrix, 1 for a vector.
    """
    re, im = present(inputs)
    n = re.shape[-1]
    shapes = [(n,) * rank for rank in ranks for _ in range(2)]

    def decompose(re: np.ndarray, im: np.ndarray) -> list[np.ndarray]:
        """Return the parts of the results for one matrix; NaN if it is not finite."""
        matrix = complex_of(re, im)
        if not np.isfinite(matrix).all():
            return [np.full(shape, np.nan) for shape in shapes]
        return [part for result in function(matrix) for part in (result.real, result.imag)]

    return map_matrices(
        decompose, shapes=shapes, dtypes=(re.dtype,) * len(shapes), arrays=(re, im), ranks=(2, 2)
    )


OPERATORS = (
    Operator(
        domain="smelt",
        name="ComplexEig",
        summary="Eigenvalues and eigenvectors of complex matrices, all as parts",
        inputs=("real", "imaginary"),
        outputs=(
            *("values_real", "values_imaginary", "left_real", "left_imaginary"),
            *("right_real", "right_imaginary"),
        ),
        infer=infer_eig,
        reference=eig_reference,
        body=in_own_precision(complex_eig_steps),
        opset=18,
    ),
    Operator(
        domain="smelt",
        name="ComplexSchur",
        summary="Triangular form of Schur of complex matrices, and its vectors, all as parts",
        inputs=("real", "imaginary"),
        outputs=("form_real", "form_imaginary", "vectors_real", "vectors_imaginary"),
        infer=infer_schur,
        reference=schur_reference,
        body=in_own_precision(schur_steps),
        opset=18,
    ),
)
