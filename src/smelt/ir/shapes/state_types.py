"""Set the types of loop states that are sequences or optionals, where the body does not give them.

The library, onnx-shape-inference, copies element types only, so that a sequence of floats would
become a float tensor.
"""

from __future__ import annotations

from copy import deepcopy

import onnx_ir as ir


def is_tensor(value: ir.Value) -> bool:
    """True unless ``value`` is known to be a sequence or an optional."""
    return value.type is None or isinstance(value.type, ir.TensorType)


def type_states(node: ir.Node) -> None:
    """Set the types of body inputs of the Loop ``node`` that are no tensors."""
    body = node.attributes.get("body") if node.op_type == "Loop" and not node.domain else None
    if body is None or body.is_ref():
        return
    for start, before in zip(node.inputs[2:], body.as_graph().inputs[2:], strict=False):
        if start is not None and before.type is None and not is_tensor(start):
            before.type = deepcopy(start.type)  # who sets an element type writes into the object
