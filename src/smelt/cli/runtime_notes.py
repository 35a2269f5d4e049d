"""Warnings about a written model for ONNX Runtime and other readers, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.interface_change import InterfaceChange, OpsetChanged
from smelt.operators.runtime_gaps import wrong_in_source

LAST_QUANTIZED = 22
"""The last ONNX opset without an Attention of its own."""


def runtime_notes(model: ir.Model, changes: Sequence[InterfaceChange] = ()) -> Iterator[str]:
    """Yield a line for each known problem that readers of ``model`` have.

    ``changes`` are the interface changes of the optimization.
    """
    raised = [each for each in changes if isinstance(each, OpsetChanged)]
    if any(each.before <= LAST_QUANTIZED < each.after for each in raised) and any(
        not node.domain and node.op_type == "Attention" for node in scope.nodes(model)
    ):
        yield (
            "to quantize the result with onnxruntime.quantization.quantize_dynamic, add "
            "--opset 20: it takes ONNX's Attention for that of com.microsoft"
        )
    wrong = wrong_in_source(model)
    if wrong:
        yield (
            f"ONNX Runtime before 1.32 computes {_listed(wrong)} wrong where integers exceed 32 "
            "bits, in the source as well; smelt compile --target ort writes other operators"
        )


def _listed(nodes: Sequence[ir.Node], most: int = 3) -> str:
    """Return the first ``most`` of ``nodes`` by operator and name, and the number of others."""
    names = [f"{node.op_type} {node.name!r}" for node in nodes[:most]]
    others = len(nodes) - len(names)
    return ", ".join(names) + (f" and {others} others" if others > 0 else "")
