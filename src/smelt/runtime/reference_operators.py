"""Extension operators for the reference evaluator, from the NumPy reference each declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.operators.declare import Operator
from smelt.operators.registry import find

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


def reference_operators(model: ir.Model) -> list[type[OpRun]]:
    """One class for each extension operator that ``model`` uses."""
    used: dict[tuple[str, str], Operator] = {}
    for node in scope.nodes(model):
        operator = find(node.domain, node.op_type) if node.domain else None
        if operator is not None:
            used.setdefault(operator.key, operator)
    return [_class(operator) for operator in used.values()]


def _class(operator: Operator) -> type[OpRun]:
    from onnx.reference.op_run import OpRun

    def run(self: OpRun, *inputs: np.ndarray | None, **attributes: Any) -> tuple[np.ndarray, ...]:
        node = ir.serde.deserialize_node(self.onnx_node)
        results: Sequence[np.ndarray] = operator.reference(inputs, operator.attributes_of(node))
        return tuple(results)

    return type(operator.name, (OpRun,), {"op_domain": operator.domain, "_run": run})
