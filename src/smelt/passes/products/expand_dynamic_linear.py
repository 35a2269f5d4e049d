"""Expand a ``Gemm`` with a computed weight or bias into ``MatMul`` and ``Add``.

    before   x, w, b ─> Gemm(alpha, beta, transB) ─> y
    after    Add(Mul(MatMul(x, Transpose(w)), alpha), Mul(b, beta)) ─> y

For targets whose linear layer accepts constants only. Factors of 1, a bias of zeros, an absent
bias and a beta of 0 add no nodes.

Needs    (1) floats; (2) a computed weight or bias. The bias broadcasts as before.
Keeps    (1) a Gemm with a constant weight and a constant bias; (2) integers, because a factor may
         be a fraction; (3) an alpha of 0, and in float16 an alpha below 1: the product may overflow
         before it is scaled.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass


@rule(op("Gemm", var("x"), var("weight"), optional(var("bias"))), same_shape=True)
def dynamic_gemm(m: Match, b: Builder) -> Replacement:
    """Replace a Gemm with a computed weight or bias by MatMul, the two factors and Add."""
    bias = m.get("bias")
    dtype = m["x"].dtype
    if dtype is None or not dtype.is_floating_point():  # needs 1, keeps 2
        return Miss("the operands are not known to be floats")
    # needs 2, keeps 1
    if all(v is None or m.array(v, limit=None) is not None for v in (m["weight"], bias)):
        return Miss("weight and bias are both constant")
    alpha = opset.attribute(m.root, "alpha", m.opset)
    if alpha == 0 or (abs(alpha) < 1 and dtype == ir.DataType.FLOAT16):  # keeps 3
        size = "0" if alpha == 0 else "below 1, and the product is float16"
        return Miss(f"alpha of the Gemm is {size}: without alpha, the product may overflow")
    product = b.op(
        "MatMul", _transposed_if(m, b, "x", "transA"), _transposed_if(m, b, "weight", "transB")
    )
    result = _times_factor(b, product, alpha, dtype)
    beta = opset.attribute(m.root, "beta", m.opset)
    if bias is None or beta == 0 or m.constants.is_filled(bias, 0):
        return result
    return b.op("Add", result, _times_factor(b, bias, beta, dtype))


def _transposed_if(m: Match, b: Builder, name: str, flag: str) -> ir.Value:
    """Return the operand ``name``, transposed if the attribute ``flag`` of the Gemm says so."""
    if not opset.attribute(m.root, flag, m.opset):
        return m[name]
    return b.op("Transpose", m[name], perm=[1, 0])


def _times_factor(b: Builder, value: ir.Value, factor: float, dtype: ir.DataType) -> ir.Value:
    """Return ``value`` times ``factor``, or ``value`` itself for a factor of 1."""
    if factor == 1:
        return value
    return b.op("Mul", value, b.constant(np.asarray(factor, dtype=dtype.numpy())))


expand_dynamic_linear = rule_pass(
    "expand_dynamic_linear",
    __doc__,
    [dynamic_gemm],
    exactness=rounding(8),
    default=False,
    source="Core ML MIL: common::expand_dynamic_linear",
)
