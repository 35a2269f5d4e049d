"""The last opsets for which ONNX Runtime has kernels of operators that it stopped updating.

Opset 22 widened the types of these operators; the runtime kept only their older kernels and loads
no model of a later opset that contains them.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope

LAST_OPSETS = dict.fromkeys(
    (
        "GlobalLpPool",
        "LpNormalization",
        "MaxRoiPool",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "RoiAlign",
    ),
    21,
)
"""By operator; `tests/targets/onnx` compares it with the installed runtime's kernels. Release 1.25
has LpNormalization of opset 22, release 1.24 has not."""


def last_opset(model: ir.Model, highest: int) -> int:
    """Return the highest opset, at most ``highest``, at which ``model`` still loads."""
    used = {node.op_type for node in scope.nodes(model) if not node.domain}
    return min((LAST_OPSETS[name] for name in used & LAST_OPSETS.keys()), default=highest)
