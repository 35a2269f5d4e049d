"""Replace the assembly of consecutive dims of a tensor by one Shape.

    before   Unsqueeze(Gather(Shape(x: B,S,16), 1), [0]) ─> y
    after    Shape(x, start=1, end=2) ─> y

    before   Concat(Shape(x: B,S,16)[0], Shape(x)[1], [16]) ─> y
    after    Shape(x) ─> y

PyTorch's TorchScript exporter reads each dim as a scalar and concatenates them.

Needs    (1) a vector whose elements are inferred to be consecutive dims of a tensor that it is
         computed from; (2) opset 15, where Shape gets a start and an end.
Keeps    (1) vectors of numbers only, which are constants.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.walk import producer_of
from smelt.passes.base import EXACT, rule_pass

START_OPSET = 15  # needs 2

_PICKS = ("Gather", "Slice", "Unsqueeze", "Squeeze", "Reshape")
"""Operators that select or reshape elements of their first input."""

MOST_PICKS = 4
"""Limit of such operators between a Shape and the vector; exporters write two."""


@rule(op(["Concat", *_PICKS], var("read"), rest=True), min_opset=START_OPSET, same_shape=True)
def consecutive_dims(m: Match, b: Builder) -> Replacement:
    """Replace a vector of dims by Shape with start and end."""
    result = m.root.outputs[0]
    if result.dtype != ir.DataType.INT64 or result.shape is None or len(result.shape) != 1:
        return None
    tensors = list(_tensors(m.root))
    elements = b.shapes.elements(result) if tensors else None
    if not elements or all(isinstance(item, int) for item in elements):  # keeps 1
        return None
    for tensor in tensors:
        start = _first_axis_of(elements, tensor.shape)  # needs 1
        if tensor.shape is None or start is None:
            continue
        end = start + len(elements)
        return b.op(
            "Shape",
            tensor,
            start=start or None,
            end=end if end < len(tensor.shape) else None,
        )
    return Miss("the joined numbers are not consecutive dims of one tensor")


def _tensors(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the tensors whose dims ``node`` reads."""
    pieces = node.inputs if node.op_type == "Concat" else node.inputs[:1]
    for value in pieces:
        producer = producer_of(value, "Shape", *_PICKS)
        for _ in range(MOST_PICKS):
            if producer is None or producer.op_type == "Shape":
                break
            producer = producer_of(producer.inputs[0], "Shape", *_PICKS)
        tensor = (
            producer.inputs[0] if producer is not None and producer.op_type == "Shape" else None
        )
        if tensor is not None:
            yield tensor


def _first_axis_of(elements: Sequence[Dim], shape: ir.Shape | None) -> int | None:
    """Return the first axis from which on ``shape`` has the dims ``elements``, else None."""
    dims = list(shape or ())
    for start in range(len(dims) - len(elements) + 1):
        if all(map(same_dim, elements, dims[start:])):
            return start
    return None


fuse_shape_slice = rule_pass("fuse_shape_slice", __doc__, [consecutive_dims], exactness=EXACT)
