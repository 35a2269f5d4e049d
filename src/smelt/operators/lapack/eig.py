"""``smelt.Eig``: eigenvalues and eigenvectors of general matrices, by LAPACK or QR steps.

Values come in the order in which QR steps find them, pairs next to each other. Vectors are
determined up to factors of absolute value 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.inputs import present
from smelt.operators.lapack.ordinary_scale import ordinary_scale
from smelt.operators.linalg.batches import check_square, map_matrices
from smelt.operators.linalg.own_precision import in_own_precision
from smelt.operators.linalg.real_eigenvectors import eig_steps


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return types of real and imaginary parts: of the values, then of the left and right
    vectors."""
    (a,) = inputs
    if a is None:
        raise ValueError("Eig takes one operand")
    check_square(a, "Eig")
    values = ir.Shape(a.shape.dims[:-1]) if a.shape is not None else None
    return [Result(a.dtype, values)] * 2 + [Result(a.dtype, a.shape)] * 4


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return values and vectors by LAPACK's ``geev``; NaN for matrices that are not finite.

    Vectors are columns of length 1.
    """
    from scipy.linalg import eig

    (a,) = present(inputs)
    n = a.shape[-1]

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the parts of values, left and right vectors of one matrix."""
        if not np.isfinite(matrix).all():
            return tuple(np.full(s, np.nan) for s in ((n,), (n,), *((n, n),) * 4))
        shift, (scaled,) = ordinary_scale(matrix)
        values, *vectors = eig(scaled, left=True, right=True)
        value_parts = (np.ldexp(part, shift) for part in (values.real, values.imag))
        return (*value_parts, *(part for array in vectors for part in (array.real, array.imag)))

    shapes = ((n,), (n,), *((n, n),) * 4)
    return map_matrices(decompose, shapes=shapes, dtypes=(a.dtype,) * 6, arrays=(a,), ranks=(2,))


OPERATOR = Operator(
    domain="smelt",
    name="Eig",
    summary="Eigenvalues and eigenvectors, as real and imaginary parts",
    inputs=("a",),
    outputs=(
        *("values_real", "values_imaginary", "left_real", "left_imaginary"),
        *("right_real", "right_imaginary"),
    ),
    infer=infer,
    reference=reference,
    body=in_own_precision(eig_steps),
    opset=18,
)
