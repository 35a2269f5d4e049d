"""``smelt.Schur``: the real Schur form of general matrices, by LAPACK or QR steps."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_square, map_matrices
from smelt.operators.linalg.own_precision import in_own_precision
from smelt.operators.linalg.real_schur_form import schur_steps


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> list[Result]:
    """Return the type of ``a`` for the form and for the vectors."""
    (a,) = inputs
    if a is None:
        raise ValueError("Schur takes one operand")
    check_square(a, "Schur")
    return [Result(a.dtype, a.shape)] * 2


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the real Schur form and vectors by LAPACK's ``gees``; NaN for a matrix that is not
    finite."""
    from scipy.linalg import schur

    (a,) = present(inputs)

    def decompose(matrix: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return form and vectors of one matrix."""
        if not np.isfinite(matrix).all():
            return (np.full_like(matrix, np.nan),) * 2
        form, vectors = schur(matrix, output="real")
        return form, vectors

    return map_matrices(
        decompose, shapes=(a.shape[-2:],) * 2, dtypes=(a.dtype,) * 2, arrays=(a,), ranks=(2,)
    )


OPERATOR = Operator(
    domain="smelt",
    name="Schur",
    summary="Real form of Schur, and its vectors",
    inputs=("a",),
    outputs=("form", "vectors"),
    infer=infer,
    reference=reference,
    body=in_own_precision(schur_steps),
    opset=18,
)
