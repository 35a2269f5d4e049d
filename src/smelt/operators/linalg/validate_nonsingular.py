"""``smelt.ValidateNonsingular``: aborts a run with singular matrices, else returns them unchanged.

It takes triangular factors ``u`` [..., m, n], such as those of LU. A zero or non-finite number on a
diagonal is an error. Its nodes stay even if nobody reads their result. ONNX cannot abort a run, so
there is no body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.operators.declare import Arguments, Attributes, Computed, Operator, Result
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_matrices


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """Return the type of ``u``."""
    shape = check_matrices(inputs[0], "ValidateNonsingular")
    assert inputs[0] is not None
    return (Result(inputs[0].dtype, shape),)


def reference(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return ``u``; raise InvalidModel E331 for the first singular matrix."""
    (u,) = present(inputs)
    diagonals = np.diagonal(u, axis1=-2, axis2=-1)
    broken = (diagonals == 0) | ~np.isfinite(diagonals)
    if broken.any():
        *batch, place = np.argwhere(broken)[0].tolist()
        raise InvalidModel(
            "E331",
            f"a matrix is singular: pivot {place} of its factor is {diagonals[*batch, place]}",
            at=f"matrix {batch}" if batch else "",
            why="the model checks that the matrix can be inverted",
            fix="give inputs for which the matrix can be inverted",
        )
    return (u,)


OPERATOR = Operator(
    domain="smelt",
    name="ValidateNonsingular",
    summary="Triangular factors, unchanged; an error if one is singular",
    inputs=("u",),
    outputs=("checked",),
    infer=infer,
    reference=reference,
)
