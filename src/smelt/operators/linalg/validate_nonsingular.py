"""``smelt.ValidateNonsingular``: ends a run whose matrices are singular, and else changes nothing.

It takes triangular factors ``u`` [..., m, n], such as those of LU, and returns them as they are. A
zero on a diagonal, or a number there that is not finite, is an error. Nodes of it stay where nobody
reads their result. ONNX cannot end a run, so there is no body.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.operators.declare import Attributes, Computed, Given, Operator, Result
from smelt.operators.inputs import present
from smelt.operators.linalg.batches import check_matrices


def infer(inputs: Sequence[ir.Value | None], attributes: Attributes) -> tuple[Result, ...]:
    """The type of ``u``."""
    shape = check_matrices(inputs[0], "ValidateNonsingular")
    assert inputs[0] is not None
    return (Result(inputs[0].dtype, shape),)


def reference(inputs: Given, attributes: Attributes) -> Computed:
    """Raises InvalidModel E331 for the first matrix that is singular."""
    (u,) = present(inputs)
    diagonals = np.diagonal(u, axis1=-2, axis2=-1)
    broken = (diagonals == 0) | ~np.isfinite(diagonals)
    if broken.any():
        *batch, place = np.argwhere(broken)[0].tolist()
        raise InvalidModel(
            "E331",
            f"a matrix is singular: pivot {place} of its factor is {diagonals[*batch, place]}",
            at=f"matrix {batch}" if batch else "",
            why="the model checks that it is not",
        )
    return (u,)


OPERATOR = Operator(
    domain="smelt",
    name="ValidateNonsingular",
    summary="Triangular factors as they are; an error if one is singular",
    inputs=("u",),
    outputs=("checked",),
    infer=infer,
    reference=reference,
)
