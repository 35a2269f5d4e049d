"""Fuse the arithmetic of a normalization into one operator.

    before   x ─> x - mean ─> / sqrt(var + epsilon) ─> * scale ─> + bias ─> y
    after    x ─> LayerNormalization(scale, bias) ─> y

Over the trailing axes it is a LayerNormalization, over all but the first two of an image with
one scale a channel an InstanceNormalization, and without the mean an RMSNormalization.

Needs    opset 17 (RMSNormalization 23); trailing axes of known size; an epsilon that a float32
         attribute holds exactly, however small it is.
Keeps    parts that something else reads; variances of other values; scales that broadcast.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.match import op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.shapes import same_dim
from smelt.passes.base import rounding, rule_pass
from smelt.passes.fuse.norm_form import NormForm, NormReader, is_closed

FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.BFLOAT16, ir.DataType.DOUBLE)


@rule(op(["Mul", "Div"], var("a"), var("b")), min_opset=17)
def normalize(m: Match, b: Builder) -> Replacement:
    """The quotient alone, with a scale if the product holds one already."""
    form = NormReader(m.constants).read(m.root)
    if form is None or form.x.dtype not in FLOATS or form.x.shape is None:
        return None
    if not is_closed(form.nodes):
        return Miss("a part of the normalization is read elsewhere")
    if float(np.float32(form.epsilon)) != form.epsilon and form.x.dtype == ir.DataType.DOUBLE:
        return Miss("a float32 attribute cannot hold the epsilon")
    rank = len(form.x.shape)
    if form.axes != tuple(range(form.axes[0], rank)):
        return Miss("the axes are not the last ones")
    if not form.centred and m.opset < 23:
        return Miss("RMSNormalization begins with opset 23")
    ones = _ones(form, b)
    if ones is None:
        return Miss("the normalized sizes are not known")
    normal = _operator(form, ones, b)
    if form.scale is None:
        return normal
    return b.op("Mul", normal, form.scale)


def _operator(form: NormForm, scale: ir.Value, b: Builder) -> ir.Value:
    op_type = "LayerNormalization" if form.centred else "RMSNormalization"
    return b.op(op_type, form.x, scale, axis=form.axes[0], epsilon=form.epsilon)


def _ones(form: NormForm, b: Builder) -> ir.Value | None:
    assert form.x.shape is not None
    assert form.x.dtype is not None
    sizes = [form.x.shape[axis] for axis in form.axes]
    if not all(isinstance(size, int) for size in sizes):
        return None
    return b.constant(np.ones([int(s) for s in sizes if isinstance(s, int)], form.x.dtype.numpy()))


_NORMS = ["LayerNormalization", "RMSNormalization"]
_normal = op(_NORMS, var("x"), var("scale"), optional(var("bias")), name="norm")


@rule(op("Mul", _normal, var("factor"), commutative=True), min_opset=17)
def absorb_scale(m: Match, b: Builder) -> Replacement:
    """A factor becomes the scale of a normalization that has ones so far."""
    node = m.node("norm")
    ones = m.array("scale", limit=None)
    if ones is None or not np.all(ones == 1) or m.get("bias") is not None:
        return None
    factor = _as_parameter(m["factor"], node, m, b)
    if factor is None:
        return Miss("the factor does not have one element for each normalized one")
    return b.like(node, m["x"], factor)


@rule(op("Add", _normal, var("term"), commutative=True), min_opset=17)
def absorb_bias(m: Match, b: Builder) -> Replacement:
    """A term becomes the bias of a LayerNormalization that has none."""
    node = m.node("norm")
    if node.op_type != "LayerNormalization" or m.get("bias") is not None:
        return None
    term = _as_parameter(m["term"], node, m, b)
    if term is None:
        return Miss("the term does not have one element for each normalized one")
    return b.like(node, m["x"], m["scale"], term)


def _as_parameter(value: ir.Value, node: ir.Node, m: Match, b: Builder) -> ir.Value | None:
    """``value`` in the shape of the normalized dims, without leading 1s; None if it is not that."""
    x = node.inputs[0]
    if x is None or x.shape is None or value.shape is None or value is node.outputs[0]:
        return None
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else -1
    wanted = x.shape.dims[axis:]
    lead = len(value.shape) - len(wanted)
    if lead < 0 or len(value.shape) > len(x.shape):
        return None
    dims = value.shape.dims
    if any(dim != 1 for dim in dims[:lead]) or not all(map(same_dim, dims[lead:], wanted)):
        return None
    if lead == 0:
        return value
    array = m.array(value, limit=None)
    if array is not None:
        return b.constant(array.reshape(array.shape[lead:]))
    return b.op("Squeeze", value, b.const_i64(list(range(lead))))


fuse_layernorm_or_instancenorm = rule_pass(
    "fuse_layernorm_or_instancenorm",
    __doc__,
    [normalize, absorb_scale, absorb_bias],
    exactness=rounding(64, "variances are summed in another order"),
    source="Core ML MIL: common::fuse_layernorm_or_instancenorm",
)
