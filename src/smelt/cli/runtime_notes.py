"""Warnings about a written model for ONNX Runtime and its tools, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from smelt.ir import scope
from smelt.operators.onnxruntime.runtime_gaps import unreplaced_defects


def runtime_notes(model: ir.Model) -> Iterator[str]:
    """Yield a line for each known problem that ONNX Runtime and its tools have with ``model``."""
    wrong = unreplaced_defects(model)
    if wrong:
        yield (
            f"ONNX Runtime before 1.32 computes {_some_nodes(wrong)} wrong where integers exceed "
            "32 bits; it does so with the source model, too; --for onnxruntime replaces them"
        )

    count = sum(node.op_type == "Attention" and not node.domain for node in scope.nodes(model))
    if count:
        yield (
            f"onnxruntime.quantization.quantize_dynamic mistakes {count:,} Attention for another "
            "operator: optimize with --for quantize before it"
        )


def _some_nodes(nodes: Sequence[ir.Node], most: int = 3) -> str:
    """Return the first ``most`` of ``nodes`` by operator and name, and the number of others."""
    names = [f"{node.op_type} {node.name!r}" for node in nodes[:most]]
    others = len(nodes) - len(names)
    return ", ".join(names) + (f" and {others} others" if others > 0 else "")
