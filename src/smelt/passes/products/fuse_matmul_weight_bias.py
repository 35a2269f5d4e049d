"""Fuse a product of two matrices and an added term into one ``Gemm``.

    before   x, w ─> MatMul ─> Add(·, b) ─> y              after   x, w, b ─> Gemm ─> y

``b - MatMul`` becomes a Gemm with alpha -1; for ``MatMul - b`` a constant b is negated.

Needs    (1) operands of rank 2, and a b of rank at most 2 that broadcasts to the shape of the
         result.
Keeps    (1) products of higher rank, which Gemm does not support; (2) integers; (3) a b of (3,N)
         with a product of one row; (4) a product with other readers.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import rounding, rule_pass
from smelt.passes.products.fuse_linear_bias import fits_gemm, why_unfit

_matmul = op("MatMul", var("x"), var("weight"), name="matmul")  # keeps 4
_bias = var("bias")


@rule(
    one_of(
        op("Add", _matmul, _bias, commutative=True),
        op("Sub", _matmul, _bias),
        op("Sub", _bias, _matmul),
    )
)
def matmul_plus(m: Match, b: Builder) -> Replacement:
    """Replace MatMul and Add or Sub by Gemm."""
    x, weight, bias, product = m["x"], m["weight"], m["bias"], m["matmul"]
    if not (_is_matrix(x) and _is_matrix(weight)):  # needs 1, keeps 1
        return Miss("an operand is not known to be a matrix")
    if not fits_gemm(bias, product):  # keeps 2, 3
        return Miss(why_unfit(bias, product))
    if m.root.op_type == "Add":
        return b.op("Gemm", x, weight, bias)
    if m.root.inputs[1] is product:
        return b.op("Gemm", x, weight, bias, alpha=-1.0)
    array = m.array(bias, limit=None)
    if array is None:
        return Miss("the subtracted term is not constant")
    return b.op("Gemm", x, weight, b.constant(-array))


def _is_matrix(value: ir.Value) -> bool:
    """True if ``value`` is known to be of rank 2."""
    return value.shape is not None and len(value.shape) == 2


fuse_matmul_weight_bias = rule_pass(
    "fuse_matmul_weight_bias",
    __doc__,
    [matmul_plus],
    exactness=rounding(4),
    source="Core ML MIL: common::fuse_matmul_weight_bias",
)
