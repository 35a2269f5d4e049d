"""Compute in float32 and round each result to float16, as a device that computes in float16 does.

ONNX Runtime computes some nodes of float16 in float32, and skips the rounding between two of them.
Then a number beyond 65504 passes unnoticed.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.passes import pipeline as language
from smelt.passes.base import PassContext
from smelt.passes.run import run

HALF, WIDE = ir.DataType.FLOAT16, ir.DataType.FLOAT


def round_each_half(model: ir.Model) -> ir.Model:
    """Return ``model``, changed in place, with a Cast to float16 and back behind each result that
    had float16.

    A model that ``widen-half`` cannot widen stays as it is.
    """
    cx = PassContext.of(model)
    halves = [
        value
        for node in scope.nodes(model)
        for value in node.outputs
        if value.dtype == HALF and node.op_type != "Constant"
    ]
    if halves:
        run(cx, language.parse("widen-half{types=float16}"))
    for value in halves:
        if value.dtype == WIDE:
            _round(value)
    return model


def _round(value: ir.Value) -> None:
    """Let all readers of ``value`` read it rounded to float16."""
    node = value.producer()
    assert node is not None
    graph = node.graph
    assert graph is not None
    uses = list(value.uses())
    narrow = ir.node("Cast", [value], {"to": int(HALF)})
    kept = ir.node("Identity", [narrow.outputs[0]])  # ONNX Runtime removes a Cast behind a Cast
    rounded = ir.node("Cast", [kept.outputs[0]], {"to": int(WIDE)})
    graph.insert_after(node, [narrow, kept, rounded])
    steps = ((narrow, HALF, "half"), (kept, HALF, "kept"), (rounded, WIDE, "rounded"))
    for step, dtype, word in steps:
        made = step.outputs[0]
        made.type, made.shape = ir.TensorType(dtype), value.shape
        made.name = f"{value.name}.{word}"
    result = rounded.outputs[0]
    for use in uses:
        use.node.replace_input_with(use.idx, result)
    for index, output in enumerate(graph.outputs):
        if output is value:
            graph.outputs[index] = result
