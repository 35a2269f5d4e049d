"""A Loop for the reference evaluator, whose own Loop differs from ONNX.

That Loop reads an omitted condition as false, and concatenates scan outputs along their first axis
instead of stacking them along a new one (onnx 1.22).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from onnx.reference.op_run import OpRun


def reference_loop() -> type[OpRun]:
    """Return the class that runs a Loop; a run without iterations fails if it has scan outputs."""
    from onnx.reference.ops.op_loop import Loop

    return type("Loop", (Loop,), {"op_domain": "", "_run": _run})


def _run(
    self: Any,
    count: np.ndarray | None,
    condition: np.ndarray | None = None,
    *states: Any,
    context: dict[str, Any] | None = None,
    body: object = None,
    attributes: dict[str, Any] | None = None,
    bindings: Any = None,
) -> tuple[Any, ...]:
    """Run the body until the count or the condition ends; return states and stacked
    scan outputs.
    """
    names = self.body.input_names
    values_by_name = dict(context or {})
    states_now = list(states)
    stacked_outputs: list[list[np.ndarray]] = [
        [] for _ in self.body.output_names[1 + len(states_now) :]
    ]
    continues, iteration = condition is None or bool(condition), 0
    while continues and (count is None or iteration < count):
        values_by_name.update(
            zip(names, (np.int64(iteration), np.bool_(continues), *states_now), strict=True)
        )
        next_condition, *results = self._run_body(
            values_by_name, attributes=attributes, bindings=bindings
        )
        states_now = results[: len(states_now)]
        for outputs, part in zip(stacked_outputs, results[len(states_now) :], strict=True):
            outputs.append(part)
        continues, iteration = bool(next_condition), iteration + 1
    return (*states_now, *(np.stack(outputs) for outputs in stacked_outputs))
