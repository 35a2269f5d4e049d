"""Fuse the arithmetic of a normalization into one operator.

    before   x ─> x - mean ─> / sqrt(var + epsilon) ─> * scale ─> + bias ─> y
    after    x ─> LayerNormalization(scale, bias) ─> y

    last axes                LayerNormalization; RMSNormalization if no mean is subtracted
    axes of an image         InstanceNormalization; LayerNormalization if scale or bias has them
    groups of channels       InstanceNormalization between Reshapes (see ``fuse-group-norm``)
    64 or more channels,
    or channels last         one of these operators between two Transposes

Needs    (1) opset 17 (RMSNormalization 23); (2) known sizes where there is no scale yet; (3) one
         positive epsilon that a float32 attribute holds exactly.
Keeps    (1) inner results with other readers; (2) a mean and a variance of different values or over
         different axes; (3) sums divided by another n; (4) scales that vary along other axes;
         float16 between two Casts with a scale that would be rounded; (5) values centred in float16
         and divided in a wider type, unless all readers cast the result to float16.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.build import Builder
from smelt.ir.pattern import one_of, op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.walk import Walk
from smelt.passes.base import rounding, rule_pass
from smelt.passes.first_opsets import opset_miss
from smelt.passes.norms.norm_form import NormForm, read_multiplied_out, read_product
from smelt.passes.norms.norm_operators import (
    OVER_CHANNELS,
    OVER_LAST_AXES,
    as_parameter,
    channel_constants,
    normalize,
    parameter_axes,
)

_ROOTS = ("Sqrt", "Pow")
"""Operators that compute a standard deviation; without one in the model, the rules do not run."""


@rule(op(["Mul", "Div"], var("a"), var("b")), needs=_ROOTS)
def product(m: Match, b: Builder) -> Replacement:
    """Replace ``(x - mean) / sqrt(var + epsilon)``, perhaps times a scale."""
    walk = m.walk()
    return _build(read_product(walk, m.constants), walk, m, b)


_product = op("Mul", var("p"), var("q"), name="product")


@rule(
    one_of(
        op("Add", _product, var("offset"), commutative=True), op("Sub", _product, var("offset"))
    ),
    needs=_ROOTS,
)
def multiplied_out(m: Match, b: Builder) -> Replacement:
    """Replace ``x * inverse + (bias - mean * inverse)``, the form of TensorFlow and Keras."""
    walk = m.walk()
    for first, second in ((m["product"], m["offset"]), (m["offset"], m["product"])):
        form = read_multiplied_out(walk, first, second, m.constants)
        if form is not None or m.root.op_type == "Sub":
            return _build(form, walk, m, b)
    return None


def _build(form: NormForm | None, walk: Walk, m: Match, b: Builder) -> Replacement:
    """Return the operator for ``form``, times its scale and plus its bias, or a Miss."""
    if form is None:  # keeps 2, 3
        return None
    if refusal := m.replaces(walk):  # keeps 1
        return refusal
    result = normalize(form.deviation, m, b)  # needs 1, 2, 3
    if isinstance(result, Miss):
        return result
    if form.deviation.x.dtype != m.root.outputs[0].dtype:
        return _cast_to_wider(result, form, m, b)
    if form.scale is not None:
        result = b.op("Mul", result, form.scale)
    return result if form.bias is None else b.op("Add", result, form.bias)


def _cast_to_wider(result: ir.Value, form: NormForm, m: Match, b: Builder) -> Replacement:
    """Return ``result`` cast to the root's dtype, for statistics in a wider type (TorchScript).

    Returns a Miss unless all readers cast the root back to the dtype of x.
    """
    narrow, out = form.deviation.x.dtype, m.root.outputs[0]
    readers = list(scope.consumers(out))
    all_cast_back = not out.is_graph_output() and all(
        node.op_type == "Cast" and node.outputs[0].dtype == narrow for node in readers
    )
    if not all_cast_back:  # keeps 5
        return Miss("the result has a reader that is not a Cast to the type of x")
    if form.scale is not None or form.bias is not None:
        return Miss("a scale or bias in a wider type than x would be rounded")
    if out.dtype is None:
        return Miss("the element type of the result is not known")
    return b.op("Cast", result, to=int(out.dtype))


_norm = op(
    [*OVER_LAST_AXES, *OVER_CHANNELS], var("x"), var("scale"), optional(var("bias")), name="norm"
)
_normal = one_of(_norm, op("Transpose", _norm, name="moved"))


@rule(op("Mul", _normal, var("factor"), commutative=True))
def absorb_scale(m: Match, b: Builder) -> Replacement:
    """Move a factor behind the normalization into its scale, which is all ones so far."""
    if not adds_nothing(m) or not is_filled(m, "scale", 1):
        return None
    norm, x = m.node("norm"), m["x"]
    factor = _parameter(m, "factor", b)
    if factor is not None:
        return _replaced(m, b, factor, m.get("bias"))
    is_over_last_of_three = (
        norm.op_type == "LayerNormalization" and x.shape is not None and len(x.shape) == 3
    )
    if (
        is_over_last_of_three
        and m.get("moved") is None
        and opset.attribute(norm, "axis", m.opset) in (2, -1)
    ):
        return _as_instance(m, b)
    if norm.op_type == "InstanceNormalization" and m.get("moved") is None:
        return _as_layer(m, b, "factor")
    return Miss("the factor varies along an axis that the scale does not have")  # keeps 4


@rule(op("Add", _normal, var("term"), commutative=True))
def absorb_bias(m: Match, b: Builder) -> Replacement:
    """Move a term behind the normalization into its bias, which is absent or zero so far."""
    if m.node("norm").op_type == "RMSNormalization" or not adds_nothing(m):
        return None
    term = _parameter(m, "term", b)
    if term is None and m.node("norm").op_type == "InstanceNormalization":
        is_bare = m.get("moved") is None and is_filled(m, "scale", 1)
        if is_bare:
            return _as_layer(m, b, "term")
        return Miss("the term varies along an axis that the bias does not have")
    if term is None:
        return Miss("the term varies along an axis that the bias does not have")
    return _replaced(m, b, m["scale"], term)


def adds_nothing(m: Match) -> bool:
    """True if the matched ``norm`` has no bias, or a bias of zeros."""
    return m.get("bias") is None or is_filled(m, "bias", 0)


def is_filled(m: Match, name: str, number: float) -> bool:
    """True if ``name`` is bound to a constant whose elements all equal ``number``."""
    array = m.array(name, limit=None)
    return array is not None and bool(np.all(array == number))


def _parameter(m: Match, name: str, b: Builder, axes: range | None = None) -> ir.Value | None:
    """Return the value bound to ``name`` in the shape of the scale; None if its dtype or its dims
    differ.

    ``axes`` are the axes along which the parameter may vary; by default, those of the scale.
    """
    norm, x = m.node("norm"), m["x"]
    if x.shape is None or m[name].dtype != x.dtype:
        return None
    rank = len(x.shape)
    axes = axes or parameter_axes(norm, rank, m.opset)
    order = tuple(range(rank))
    if m.get("moved") is not None:
        order = tuple(opset.attribute(m.node("moved"), "perm", m.opset) or order[::-1])
    return as_parameter(m[name], x, axes, order, m, b)


def _replaced(m: Match, b: Builder, scale: ir.Value, bias: ir.Value | None) -> ir.Value:
    """Return the matched normalization, and the Transpose behind it, with another scale and
    bias."""
    normal = b.like(m.node("norm"), m["x"], scale, bias)
    return normal if m.get("moved") is None else b.like(m.node("moved"), normal)


def _as_instance(m: Match, b: Builder) -> Replacement:
    """Return InstanceNormalization with the factor as its scale for a LayerNormalization of (N, C,
    L)."""
    x = m["x"]
    channels = _parameter(m, "factor", b, range(1, 2))
    if channels is None:
        return Miss("the factor varies along an axis that the scale does not have")
    if x.shape is None or not isinstance(x.shape[1], int):
        return Miss("the number of channels is not known")
    if x.dtype not in (ir.DataType.FLOAT, ir.DataType.FLOAT16):
        return Miss(f"InstanceNormalization of {x.dtype} has no kernel")
    _, zeros = channel_constants(x, b)
    epsilon = opset.attribute(m.node("norm"), "epsilon", m.opset)
    return b.op("InstanceNormalization", x, channels, zeros, epsilon=epsilon)


def _as_layer(m: Match, b: Builder, name: str) -> Replacement:
    """Return LayerNormalization for an InstanceNormalization, with a parameter of the image's
    shape.

    ``name`` is "factor" for a scale, "term" for a bias.
    """
    x, norm = m["x"], m.node("norm")
    rank = len(x.shape or ())
    value = _parameter(m, name, b, range(2, rank)) if rank > 2 else None
    if x.shape is None or value is None:
        return Miss(f"the {name} is not proved to vary only along the axes of the image")
    if early := opset_miss(m, "LayerNormalization"):
        return early
    sizes = [size for size in x.shape.dims[2:] if isinstance(size, int)]
    if len(sizes) < rank - 2 or x.dtype is None:
        return Miss("the normalized sizes are not known")
    ones = value if name == "factor" else b.constant(np.ones(sizes, x.dtype.numpy()))
    epsilon = opset.attribute(norm, "epsilon", m.opset)
    bias = value if name == "term" else None
    return b.op("LayerNormalization", x, ones, bias, axis=2, epsilon=epsilon)


@rule(
    op(
        "Cast",
        op(
            OVER_LAST_AXES,
            op("Cast", var("x"), name="wide", shared=True, to=int(ir.DataType.FLOAT)),
            var("scale"),
            optional(var("bias")),
            name="norm",
        ),
    ),
    min_opset=17,
)
def absorb_casts(m: Match, b: Builder) -> Replacement:
    """Drop the Casts to float32 and back, as the operator itself has statistics in float32."""
    x, norm = m["x"], m.node("norm")
    if x.dtype not in (ir.DataType.FLOAT16, ir.DataType.BFLOAT16):
        return None
    if m.root.outputs[0].dtype != x.dtype or opset.attribute(norm, "stash_type", m.opset) != 1:
        return None
    ones = m.array("scale", limit=None)
    if ones is None or not np.all(ones == 1):
        return Miss("the float32 scale is not all ones, and would be rounded")
    if m.get("bias") is not None:
        return Miss("the normalization has a float32 bias, which would be rounded")
    return b.like(norm, x, b.constant(ones.astype(x.dtype.numpy())))


fuse_layernorm_or_instancenorm = rule_pass(
    "fuse_layernorm_or_instancenorm",
    __doc__,
    [product, multiplied_out, absorb_scale, absorb_bias, absorb_casts],
    exactness=rounding(64, "variances are summed in another order"),
    source="Core ML MIL: common::fuse_layernorm_or_instancenorm",
)
