"""A Resize of some axes, which ONNX Runtime may fail to open below a Transpose.

The optimizer of the runtime permutes scales and sizes as if there were one for each axis (seen up
to 1.32): it fails, or the session ends with "Number of elements of input 'sizes' (0) does not match
the number of axes". The replacement is the Resize of all axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of
from smelt.ir.node_inputs import optional_input
from smelt.ir.opsets.resize_axes import inputs_of_all_axes
from smelt.ir.walk import producer_of
from smelt.operators.declare import Attributes

POLICY, STRETCH = "keep_aspect_ratio_policy", "stretch"
"""The attribute that may keep the ratio of the sizes, and its default, which does not."""


def is_partial(node: ir.Node) -> bool:
    """True if ``node`` is a Resize of some axes that should be replaced by a Resize of all axes.

    If the inputs of the replacement are not constants, further nodes compute them; with a policy,
    Reshapes are added. Such a Resize is replaced only if its graph has a Transpose.
    """
    if node.op_type != "Resize" or node.domain or "axes" not in node.attributes:
        return False
    x = node.inputs[0]
    if x is None or x.shape is None or not len(x.shape):
        return False
    is_transposed = any(other.op_type == "Transpose" for other in node.graph or ())
    if node.attributes.get_string(POLICY, STRETCH) != STRETCH:
        return is_transposed and not _is_between_reshapes(node)
    return is_transposed or _has_constant_replacement(node)


def _is_between_reshapes(node: ir.Node) -> bool:
    """True if a Reshape computes the operand, and Reshapes are all readers of the result."""
    around = [producer_of(node.inputs[0], "Reshape"), *scope.consumers(node.outputs[0])]
    return all(each is not None and each.op_type == "Reshape" for each in around)


def _has_constant_replacement(node: ir.Node) -> bool:
    """True if the roi, scales and sizes of the Resize of all axes are constants.

    Its sizes include those of axes that are not resized, so all sizes of x must be known.
    """
    x = node.inputs[0]
    has_sizes = optional_input(node, 3) is not None
    sizes_are_known = not has_sizes or (
        x is not None and x.shape is not None and x.shape.is_static()
    )
    return sizes_are_known and all(
        value is None or tensor_of(value) is not None for value in node.inputs[1:]
    )


def of_all_axes(
    b: Builder, inputs: Sequence[ir.Value | None], attributes: Attributes
) -> tuple[ir.Value, ...] | None:
    """Build the Resize without ``axes``, or between Reshapes; None if the rank is not known."""
    x = inputs[0]
    options: dict[str, Any] = dict(attributes)
    axes = options["axes"]
    if x is None or x.shape is None or not isinstance(axes, Sequence):
        return None
    if options.get(POLICY, STRETCH) != STRETCH:
        same = b.const_i64([0] * len(x.shape))
        resized = b.op("Resize", b.op("Reshape", x, same), *inputs[1:], **options)
        return (b.op("Reshape", resized, same),)
    del options["axes"]
    numbers = [int(axis) for axis in axes]
    extended = inputs_of_all_axes(inputs, numbers, len(x.shape), b)
    while extended[-1] is None:
        extended.pop()
    return (b.op("Resize", *extended, **options),)
