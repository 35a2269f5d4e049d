"""Fold a term that is added to or subtracted from a ``Gemm`` into its bias.

    before   a, b, c ─> Gemm ─> Add(·, k) ─> y            after   a, b ─> Gemm(c + k) ─> y

``k - Gemm`` negates alpha.

Needs    (1) a k of rank at most 2 that broadcasts to the shape of the result; (2) a constant k if
         the Gemm already has a bias, or if k is subtracted.
Keeps    (1) integers; (2) a Gemm of dequantized operands, which runtimes compute on integers only
         if all its operands are dequantized; (3) a k that raises the rank, also (1,1,D); (4) a Gemm
         with other readers.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import const, one_of, op, optional, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.passes.base import rounding, rule_pass
from smelt.passes.convolution.rounded_product import round_to
from smelt.passes.quantize.quantized_groups import is_integer_product

# keeps 4
_gemm = op("Gemm", var("a"), var("b"), optional(const(name="c", limit=None)), name="gemm")
_term = var("term")


@rule(
    one_of(
        op("Add", _gemm, _term, commutative=True),
        op("Sub", _gemm, _term),
        op("Sub", _term, _gemm),
    )
)
def gemm_plus(m: Match, b: Builder) -> Replacement:
    """Fold ``Gemm + k``, ``Gemm - k`` or ``k - Gemm`` into one Gemm."""
    gemm, term = m["gemm"], m["term"]
    if not fits_gemm(term, gemm):  # needs 1, keeps 1, 3
        return Miss(why_unfit(term, gemm))
    node = m.node("gemm")
    if is_integer_product(node):  # keeps 2
        return Miss("the operands of the Gemm are dequantized, but the term is not")
    negated = m.root.op_type == "Sub" and m.root.inputs[1] is gemm
    bias = _bias(m, b, 1.0 if m.root.op_type == "Add" or negated else -1.0, negated)
    if isinstance(bias, Miss):
        return bias
    alpha = opset.attribute(node, "alpha", m.opset) * (-1.0 if negated else 1.0)
    kept_attributes = [a for a in node.attributes.values() if a.name not in ("alpha", "beta")]
    attributes = (
        [*kept_attributes, ir.AttrFloat32("alpha", alpha)] if alpha != 1 else kept_attributes
    )
    return b.add(ir.Node("", "Gemm", (m["a"], m["b"], bias), attributes))[0]


def _bias(m: Match, b: Builder, sign: float, negated: bool) -> ir.Value | Miss:
    """Return the bias of the new Gemm, ``sign * term ± beta * c``, or a Miss if it is not constant.

    It subtracts the old bias c if ``negated``: ``term - (x + c)`` is ``-x + (term - c)``. A term
    that is only added to a Gemm without a bias may be computed; it becomes the bias as it is.
    """
    term, dtype = m["term"], m["term"].dtype
    assert dtype is not None
    if m.get("c") is None and sign == 1:
        return term
    array = m.array(term, limit=None)
    if array is None:  # needs 2
        return Miss("the term is not constant")
    exact = sign * array.astype(np.float64)
    first_bias = m.array("c", limit=None)
    if first_bias is not None:
        beta = opset.attribute(m.node("gemm"), "beta", m.opset)
        exact = exact + (-beta if negated else beta) * first_bias.astype(np.float64)
    rounded = round_to(exact, dtype.numpy())
    return Miss(f"the new bias does not fit {dtype}") if rounded is None else b.constant(rounded)


def fits_gemm(value: ir.Value, result: ir.Value) -> bool:
    """True if a Gemm with ``result`` can have ``value`` as its bias."""
    if value.dtype is None or not value.dtype.is_floating_point() or value.dtype != result.dtype:
        return False
    if value.shape is None or result.shape is None or len(value.shape) > len(result.shape):
        return False
    dims = result.shape.dims[len(result.shape) - len(value.shape) :]
    return all(
        value_dim == 1 or same_dim(value_dim, result_dim)
        for value_dim, result_dim in zip(value.shape.dims, dims, strict=True)
    )


def why_unfit(value: ir.Value, result: ir.Value) -> str:
    """Say for a Miss which condition of ``fits_gemm`` fails for ``value`` and ``result``."""
    if value.dtype is None or not value.dtype.is_floating_point():
        return "the term is not known to be floating-point"
    if value.dtype != result.dtype:
        return "the term has another element type than the product"
    return "the term is not proved to broadcast to the product"


fuse_linear_bias = rule_pass(
    "fuse_linear_bias",
    __doc__,
    [gemm_plus],
    exactness=rounding(4),
    after=("fuse_matmul_weight_bias",),
    source="Core ML MIL: common::fuse_linear_bias",
)
