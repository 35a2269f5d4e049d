"""The last opsets that ONNX Runtime has kernels for, of operators that it did not follow further.

At opset 22, ONNX widened the types of these operators; the runtime kept their older kernels alone
and loads no model of a later opset that has them.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope

LAST_OPSETS = dict.fromkeys(
    (
        "GlobalLpPool",
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
"""By operator; `tests/targets/onnx` holds it against the kernels of the installed runtime."""


def last_opset(model: ir.Model, highest: int) -> int:
    """The opset, at most ``highest``, up to which ``model`` may be raised and still loads."""
    found = {node.op_type for node in scope.nodes(model) if not node.domain}
    return min((LAST_OPSETS[name] for name in found & LAST_OPSETS.keys()), default=highest)
