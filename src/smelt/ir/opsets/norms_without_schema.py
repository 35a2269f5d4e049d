"""Normalizations in the ONNX domain without a schema, expanded into ONNX operators.

ONNX Runtime reads LayerNormalization before opset 17, where ONNX introduced it, and
SimplifiedLayerNormalization at every opset: its own optimizers write both. GroupNormalization of
opsets 18 to 20 has one scale per group; ONNX deprecated it, and redefined the name at opset 21.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.node_inputs import first_inputs

_FLOAT = ir.DataType.FLOAT
_NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)


def can_expand(node: ir.Node) -> bool:
    """True if the element type of ``node`` is known, and its rank where an output needs it."""
    x = node.inputs[0]
    if x is None or x.dtype is None:
        return False
    return x.shape is not None or node.attributes.get_int("axis", -1) < 0 or len(node.outputs) == 1


def layer_norm(b: Builder, node: ir.Node) -> tuple[ir.Value, ...]:
    """Build ``(x - mean) / sqrt(variance + epsilon) * scale + bias``.

    Returns the result, the mean, and the factor ``1 / sqrt(variance + epsilon)``.
    """
    return _expand_norm(b, node, centred=True)


def rms_norm(b: Builder, node: ir.Node) -> tuple[ir.Value, ...]:
    """Build ``result = x * factor * scale`` with ``factor = 1 / sqrt(mean of squares + epsilon)``;
    return ``(result, factor)``.
    """
    return _expand_norm(b, node, centred=False)


def group_norm(b: Builder, node: ir.Node) -> tuple[ir.Value, ...]:
    """Build an InstanceNormalization in which each group is one channel, with its scale and
    bias."""
    x, scale, bias = node.inputs
    groups = node.attributes.get_int("num_groups", 1)
    rows = b.op("Reshape", x, b.const_i64([0, groups, -1]))
    epsilon = node.attributes.get_float("epsilon", 1e-5)
    normed = b.op("InstanceNormalization", rows, scale, bias, epsilon=epsilon)
    return (b.op("Reshape", normed, b.op("Shape", x)),)


def _expand_norm(b: Builder, node: ir.Node, *, centred: bool) -> tuple[ir.Value, ...]:
    """Build a norm; return ``(result, mean, factor)`` if ``centred``, else ``(result, factor)``.

    ``factor`` is 1 / standard deviation. Statistics of float16 and bfloat16 are in float32, as in
    ONNX Runtime.
    """
    x, scale, bias = first_inputs(node, 3)
    assert x is not None
    is_half = x.dtype in _NARROW
    wide_input = b.op("Cast", x, to=int(_FLOAT)) if is_half else x
    axes = _axes(wide_input, node.attributes.get_int("axis", -1))
    rows = (
        wide_input
        if axes
        else b.op("Flatten", wide_input, axis=node.attributes.get_int("axis", -1))
    )
    mean = b.mean(rows, axes or [-1]) if centred else None
    centred_input = rows if mean is None else b.op("Sub", rows, mean)
    variance = b.mean(b.op("Mul", centred_input, centred_input), axes or [-1])
    epsilon = b.const_like(node.attributes.get_float("epsilon", 1e-5), wide_input)
    deviation = b.op("Sqrt", b.op("Add", variance, epsilon))
    result = b.op("Div", centred_input, deviation)
    if rows is not wide_input:
        result = b.op("Reshape", result, b.op("Shape", x))
    if is_half and x.dtype is not None:
        result = b.op("Cast", result, to=int(x.dtype))
    result = b.op("Mul", result, scale)
    if bias is not None:
        result = b.op("Add", result, bias)
    factor = b.op("Reciprocal", deviation)
    return (result, factor) if mean is None else (result, mean, factor)


def _axes(x: ir.Value, axis: int) -> list[int]:
    """Return the axes from ``axis`` on, counted from the end; empty if the unknown rank is
    needed."""
    if axis < 0:
        return list(range(axis, 0))
    return list(range(axis - len(x.shape), 0)) if x.shape is not None else []
