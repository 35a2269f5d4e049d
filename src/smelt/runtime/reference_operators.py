"""Run extension operators in the reference evaluator, by the NumPy reference that each declares."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.onnx_ir_log import silent_onnx_ir
from smelt.operators.declare import Operator, Reference
from smelt.operators.registry import find
from smelt.runtime.reference_loop import reference_loop

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


SINGLE_IN_ONNX = ("Erf",)
"""ONNX operators whose reference always computes in single precision."""


def in_double(op_type: str) -> Reference | None:
    """Return smelt's reference for ``op_type`` if ONNX's reference has only single precision."""
    operator = find("smelt", op_type) if op_type in SINGLE_IN_ONNX else None
    return None if operator is None else operator.reference


def reference_operators(model: ir.Model) -> list[type[OpRun]]:
    """Return classes for the operators that the evaluator of onnx lacks, or computes wrong.

    There is one for each extension operator in ``model``, one for Loop, and one for each of
    ``SINGLE_IN_ONNX``, which computes in the precision of its operand.
    """
    used: dict[tuple[str, str], Operator] = {}
    for node in scope.nodes(model):
        operator = find(node.domain, node.op_type) if node.domain else None
        if operator is not None:
            used.setdefault(operator.key, operator)
    double = [find("smelt", name) for name in SINGLE_IN_ONNX]
    return [
        *(_class(operator, operator.domain) for operator in used.values()),
        *(_class(operator, "") for operator in double if operator is not None),
        reference_loop(),
    ]


def _class(operator: Operator, domain: str) -> type[OpRun]:
    """Return an OpRun class that calls the reference of ``operator``."""
    from onnx.reference.op_run import OpRun

    def run(self: OpRun, *inputs: np.ndarray | None, **attributes: Any) -> tuple[np.ndarray, ...]:
        """Return the results of the operator's reference."""
        with silent_onnx_ir():  # it warns of missing producers, which are not needed here
            node = ir.serde.deserialize_node(self.onnx_node)
        results: Sequence[np.ndarray] = operator.reference(inputs, operator.attributes_of(node))
        return tuple(results)

    return type(
        operator.name,
        (OpRun,),
        {"op_domain": domain, "_run": run},
    )
