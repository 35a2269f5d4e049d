"""Fold a constant that multiplies or divides a product with a weight into the weight.

    before   x ─> MatMul(W) ─> Mul(·, s) ─> y              after   x ─> MatMul(W * s) ─> y
    before   x ─> Gemm(W, b) ─> Mul(·, s) ─> y             after   x ─> Gemm(W * s, b * s) ─> y

A constant that is added between MatMul and Mul is multiplied, too.

Needs    (1) a constant weight on the right, and a constant with one element for each column or one
         in all; they are combined in float64 and rounded once; (2) a constant bias, if any.
Keeps    (1) ``s / product``; (2) a division by 0; (3) constants that vary along another axis or
         enlarge the result; (4) products that overflow; (5) a weight with other readers, because
         it would be stored twice; (6) integers, and dequantized weights.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset, scope
from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.rounded_product import round_product, round_to

_weight = const(name="weight", limit=None)  # needs 1
_bias = const(name="bias", limit=None)  # needs 2
_matmul = op("MatMul", var("x"), _weight, name="product")
_gemm = op("Gemm", var("x"), _weight, optional(_bias), name="product")
_linear = one_of(_matmul, op("Add", _matmul, _bias, commutative=True, name="sum"), _gemm)
_scale = const(name="scale", limit=None)


@rule(one_of(op("Mul", _linear, _scale, commutative=True), op("Div", _linear, _scale)))  # keeps 1
def linear_times(m: Match, b: Builder) -> Replacement:
    """Fold a factor or divisor of the result into weight and bias."""
    weight, scale = m.array("weight", limit=None), m.array("scale", limit=None)
    dtype = m["weight"].dtype
    if weight is None or scale is None or dtype is None or not dtype.is_floating_point():  # keeps 6
        return None
    if scope.num_uses(m["weight"]) > 1:  # keeps 5
        return Miss("the weight has other readers")
    transposed = bool(_attribute(m, "transB"))
    columns = _columns(m["product"], weight, scale, transposed)
    if columns is None:  # keeps 3
        return Miss("the constant varies along an axis other than the columns of the weight")
    with np.errstate(all="ignore"):
        factor = 1 / columns if m.root.op_type == "Div" else columns
    scaled = round_product(weight, factor[:, None] if transposed else factor, dtype.numpy())
    if scaled is None:  # keeps 2, 4
        return Miss(f"the new weight does not fit {dtype}")
    bias = _scaled_bias(m, factor)
    if isinstance(bias, Miss):
        return bias
    return _rebuilt_product(m, b, scaled, bias)


def _attribute(m: Match, name: str) -> object:
    """Return the attribute ``name`` of the matched Gemm; None for a MatMul."""
    node = m.node("product")
    return opset.attribute(node, name, m.opset) if node.op_type == "Gemm" else None


def _columns(
    product: ir.Value, weight: np.ndarray, scale: np.ndarray, transposed: bool
) -> np.ndarray | None:
    """Return ``scale`` as a float64 vector of one number or one for each column of the result.

    None if it varies along another axis. A ``transposed`` weight has its columns in axis 0.
    """
    if weight.ndim < 2 or not weight.size or scale.dtype.kind not in "fV":
        return None
    if product.shape is None or scale.ndim > len(product.shape):
        return None
    count = weight.shape[0 if transposed else -1]
    if scale.size not in (1, count) or (scale.ndim and scale.shape[-1] != scale.size):
        return None
    return scale.reshape(-1).astype(np.float64)


def _scaled_bias(m: Match, factor: np.ndarray) -> np.ndarray | Miss | None:
    """Return the bias times ``factor``; None if there is no bias, or a Miss."""
    if m.get("bias") is None:
        return None
    array = m.array("bias", limit=None)
    if array is None:
        return Miss("the bias of the product is not constant")
    if np.broadcast(array, factor).size > max(array.size, factor.size):
        return Miss("the new bias would be larger than the old one")
    with np.errstate(all="ignore"):
        rounded = round_to(array.astype(np.float64) * factor, array.dtype)
    return Miss("the new bias does not fit its type") if rounded is None else rounded


def _rebuilt_product(m: Match, b: Builder, weight: np.ndarray, bias: np.ndarray | None) -> ir.Value:
    """Return the product with the new weight and bias."""
    product = m.node("product")
    operands = [m["x"], b.constant(weight, name=m["weight"].name)]
    new_bias = None if bias is None else b.constant(bias, name=m["bias"].name)
    if product.op_type == "Gemm":
        return b.like(product, *operands, new_bias)
    result = b.like(product, *operands)
    return result if new_bias is None else b.op("Add", result, new_bias)


fuse_linear_scale = rule_pass(
    "fuse_linear_scale",
    __doc__,
    [linear_times],
    exactness=rounding(8, "weights are scaled before the sum instead of after it"),
)
