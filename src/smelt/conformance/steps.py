"""Whether results that fail verification are within some quantization steps of the source's."""

from __future__ import annotations

import onnx_ir as ir

from smelt.check.compare import Tolerance
from smelt.check.verification import Report
from smelt.check.verify import verify
from smelt.conformance.cases import Case
from smelt.ir.constants import Constants
from smelt.ir.quantization import quantization_of
from smelt.targets.base import Artifact

ROUNDING = 1e-5
"""The part of a step that the conversion to a float may add."""


def within_steps(case: Case, source: ir.Model, artifact: Artifact, report: Report) -> bool:
    """True if each output that fails in ``report`` is quantized and within ``case.steps`` of it.

    A step is 1 for an output of integers, and the scale of the DequantizeLinear of a float one.
    """
    if not case.steps or report.interface or any(trial.failure for trial in report.trials):
        return False
    trials = [trial for trial in report.trials if not trial.skipped]
    for index, output in enumerate(source.graph.outputs):
        comparisons = [trial.outputs[index] for trial in trials]
        if all(comparison.ok for comparison in comparisons):
            continue
        if _is_quantized(output):
            if any(each.problem or each.error > case.steps for each in comparisons):
                return False
            continue
        scale = _scale_of(output)
        if scale is None:
            return False
        allowed = Tolerance(atol=case.steps * scale * (1 + ROUNDING))
        again = verify(source, artifact, dims=case.dims or None, tolerance=allowed)
        if not all(trial.outputs[index].ok for trial in again.trials if not trial.skipped):
            return False
    return True


def _is_quantized(value: ir.Value) -> bool:
    """True for integers that operators around them quantize."""
    return quantization_of(value) is not None


def _scale_of(value: ir.Value) -> float | None:
    """Return the scale of a float output of DequantizeLinear; None for other outputs."""
    node = value.producer()
    if node is None or (node.domain, node.op_type) != ("", "DequantizeLinear"):
        return None
    scale = Constants().get(node.inputs[1], limit=None)
    return float(scale.max()) if scale is not None and scale.size else None
