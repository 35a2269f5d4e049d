"""Operators in the ONNX domain without a schema, which ONNX Runtime runs nevertheless.

Most are experimental operators that ONNX withdrew, in models of WinML's and Caffe2's converters;
ONNX Runtime runs them up to opset 9. Others are written by its own optimizer. When a model is read
or raised, they are replaced by ONNX operators as defined here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.opsets.norms_without_schema import can_expand, group_norm, layer_norm, rms_norm
from smelt.ir.rewrite import Rewriter

Expansion: TypeAlias = Callable[[Builder, ir.Node], "ir.Value | tuple[ir.Value, ...]"]


NEVER = 1 << 31
"""Later than any opset."""


@dataclass(frozen=True)
class Withdrawn:
    """A withdrawn operator; ``expand`` builds its results from operators of opset 13 or later.

    ``inputs``: minimum and maximum number; ``outputs``: maximum number; ``required``: attributes
    without a default; ``since`` and ``until``: the first opset with it, and the first without it or
    with a definition in ONNX; ``stays``: ONNX's definition is the same; ``of_floats``: takes floats
    only.
    """

    expand: Expansion
    inputs: tuple[int, int] = (1, 1)
    required: tuple[str, ...] = ()
    since: int = 1
    until: int = 10
    outputs: int = 1
    stays: bool = False
    of_floats: bool = True


def is_withdrawn(op_type: str, version: int) -> bool:
    """True for an operator that models of ONNX opset ``version`` use without a schema."""
    operator = WITHDRAWN.get(op_type)
    return operator is not None and operator.since <= version < operator.until


def defined_from(op_type: str) -> int:
    """Return the first opset at which ONNX defines the same operator; ``NEVER`` if none does."""
    operator = WITHDRAWN[op_type]
    return operator.until if operator.stays else NEVER


def misfit(node: ir.Node) -> str | None:
    """Return why ``node`` is not a valid use of its withdrawn operator; None if it is."""
    operator = WITHDRAWN[node.op_type]
    least, most = operator.inputs
    input_count_fits = least <= len(node.inputs) <= most and None not in node.inputs[:least]
    if not input_count_fits or not 1 <= len(node.outputs) <= operator.outputs:
        return f"it takes {least} to {most} inputs and gives 1 to {operator.outputs} outputs"
    x = node.inputs[0]
    if operator.of_floats and x is not None and x.dtype and not x.dtype.is_floating_point():
        return f"it takes floats, not {x.dtype.name.lower()}"
    missing = [name for name in operator.required if name not in node.attributes]
    return f"the attribute {missing[0]!r} is missing" if missing else None


def expand_withdrawn(node: ir.Node, rewriter: Rewriter) -> None:
    """Replace ``node`` by ONNX operators; norms of values with unknown types stay."""
    if node.op_type in NORMS and not can_expand(node):
        return
    build = rewriter.builder(node, [node], "raise_opset")
    results = WITHDRAWN[node.op_type].expand(build, node)
    values = results if isinstance(results, tuple) else (results,)
    rewriter.replace(node, values[: len(node.outputs)], trust_shape=True)


def _number(node: ir.Node, name: str, default: float) -> float:
    """Return a float attribute of ``node``."""
    return node.attributes.get_float(name, default)


def _times(b: Builder, x: ir.Value | None, factor: float) -> ir.Value:
    """Build ``x * factor`` with a constant in the type of ``x``."""
    assert x is not None
    return b.op("Mul", x, b.constant(_constant_like(x, factor)))


def _constant_like(x: ir.Value, values: object) -> np.ndarray:
    """Return ``values`` as an array in the type of ``x``, float32 if unknown."""
    dtype = x.dtype if x.dtype is not None else ir.DataType.FLOAT
    return np.asarray(values, dtype.numpy())


def _affine(b: Builder, node: ir.Node) -> ir.Value:
    """Build ``alpha * x + beta``."""
    product = _times(b, node.inputs[0], _number(node, "alpha", 1.0))
    return b.op("Add", product, b.constant(_constant_like(product, _number(node, "beta", 0.0))))


def _scale(b: Builder, node: ir.Node) -> ir.Value:
    """Build ``scale * x``."""
    return _times(b, node.inputs[0], _number(node, "scale", 1.0))


def _image_scaler(b: Builder, node: ir.Node) -> ir.Value:
    """Build ``scale * x + bias`` with one bias per channel."""
    scaled = _times(b, node.inputs[0], _number(node, "scale", 1.0))
    bias = _constant_like(scaled, node.attributes.get_floats("bias", ()))
    return b.op("Add", scaled, b.constant(bias.reshape(-1, 1, 1)))


def _scaled_activation(function: str) -> Expansion:
    """Return a builder of ``alpha * function(beta * x)``."""

    def expand(b: Builder, node: ir.Node) -> ir.Value:
        """Build ``alpha * function(beta * x)``."""
        inner = _times(b, node.inputs[0], _number(node, "beta", 1.0))
        return _times(b, b.op(function, inner), _number(node, "alpha", 1.0))

    return expand


def _crop(b: Builder, node: ir.Node) -> ir.Value:
    """Build a Slice. ``border``: left, top, right, bottom; ``scale``: height and width to keep."""
    left, top, right, bottom = node.attributes.get_ints("border", (0, 0, 0, 0))
    scale = node.attributes.get_ints("scale", ())
    last = np.iinfo(np.int64).max
    ends = (
        (top + scale[0], left + scale[1])
        if len(scale)
        else (-bottom if bottom else last, -right if right else last)
    )
    bounds = (b.const_i64(numbers) for numbers in ((top, left), ends, (2, 3)))
    return b.op("Slice", node.inputs[0], *bounds)


def _dynamic_slice(b: Builder, node: ir.Node) -> ir.Value:
    """Build a Slice of the same operands."""
    return b.op("Slice", *node.inputs)


def _thresholded_relu(b: Builder, node: ir.Node) -> ir.Value:
    """Build ThresholdedRelu with the alpha of the activation."""
    return b.op("ThresholdedRelu", node.inputs[0], alpha=_number(node, "alpha", 1.0))


def _mean_variance_normalization(b: Builder, node: ir.Node) -> ir.Value:
    """Build the norm over rows and columns, and channels too with ``across_channels``."""
    across = node.attributes.get_int("across_channels", 0)
    x = node.inputs[0]
    rank = len(x.shape) if x is not None and x.shape is not None else 4
    reduced = (0, 1, 2, 3) if across else (0, 2, 3)
    axes = [axis for axis in reduced if axis < rank]
    if node.attributes.get_int("normalize_variance", 1):
        return b.op("MeanVarianceNormalization", x, axes=axes)
    return b.op("Sub", x, b.mean(x, axes))


_SCALES = ("alpha", "beta")

NORMS = ("LayerNormalization", "SimplifiedLayerNormalization")

WITHDRAWN = {
    "Affine": Withdrawn(_affine),
    "Crop": Withdrawn(_crop, required=("border",)),
    "DynamicSlice": Withdrawn(_dynamic_slice, inputs=(3, 4), of_floats=False),
    "GroupNormalization": Withdrawn(
        group_norm, inputs=(3, 3), required=("num_groups",), since=18, until=21
    ),
    "ImageScaler": Withdrawn(_image_scaler, required=("bias",)),
    "LayerNormalization": Withdrawn(layer_norm, inputs=(2, 3), until=17, outputs=3, stays=True),
    "MeanVarianceNormalization": Withdrawn(_mean_variance_normalization, until=9),
    "ParametricSoftplus": Withdrawn(_scaled_activation("Softplus"), required=_SCALES),
    "Scale": Withdrawn(_scale),
    "ScaledTanh": Withdrawn(_scaled_activation("Tanh"), required=_SCALES),
    "SimplifiedLayerNormalization": Withdrawn(rms_norm, inputs=(2, 2), until=NEVER, outputs=2),
    "ThresholdedRelu": Withdrawn(_thresholded_relu),
}
