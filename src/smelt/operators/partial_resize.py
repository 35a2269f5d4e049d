"""A Resize of some axes, which ONNX Runtime may fail to open below a Transpose.

The optimizer of the runtime permutes scales and sizes as if there were one for each axis (seen up
to 1.32): it fails, or the session ends with "Number of elements of input 'sizes' (0) does not match
the number of axes". The replacement is the Resize of all axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of
from smelt.ir.resize_axes import inputs_of_all_axes
from smelt.operators.declare import Attributes


def is_partial(node: ir.Node) -> bool:
    """True if ``node`` is a Resize with the attribute ``axes`` that should be one of all axes.

    Computed sizes are extended by further nodes, so that is left out where no Transpose is near.
    """
    if node.op_type != "Resize" or node.domain or "axes" not in node.attributes:
        return False
    x = node.inputs[0]
    policy = node.attributes.get_string("keep_aspect_ratio_policy", "stretch")
    if x is None or x.shape is None or not len(x.shape) or policy != "stretch":
        return False
    return _is_constant(node) or any(other.op_type == "Transpose" for other in node.graph or ())


def _is_constant(node: ir.Node) -> bool:
    """True if the extended inputs are constants."""
    x = node.inputs[0]
    sized = len(node.inputs) > 3 and node.inputs[3] is not None
    known = not sized or (x is not None and x.shape is not None and x.shape.is_static())
    return known and all(value is None or tensor_of(value) is not None for value in node.inputs[1:])


def of_all_axes(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...] | None:
    """Build the Resize without ``axes``; None if the rank is not known."""
    x = inputs[0]
    options: dict[str, Any] = dict(attributes)
    axes = options.pop("axes")
    if x is None or x.shape is None or not isinstance(axes, Sequence):
        return None
    numbers = [int(axis) for axis in axes]
    extended = inputs_of_all_axes(inputs, numbers, len(x.shape), b)
    while extended[-1] is None:
        extended.pop()
    return (b.op("Resize", *extended, **options),)
