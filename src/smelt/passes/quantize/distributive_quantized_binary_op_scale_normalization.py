"""Divide the scales around a quantized sum by one of them, so that this scale becomes 1.

    before   x ─> DequantizeLinear(a) ─┬─> Add ─> QuantizeLinear(c) ─> z
             y ─> DequantizeLinear(b) ─┘
    after    x ─> DequantizeLinear(a / b) ─┬─> Add ─> QuantizeLinear(c / b) ─> z
             y ─> DequantizeLinear(1) ─────┘

This saves one multiplication for each element in runtimes that compute a quantized sum operator by
operator. It applies to Add and Sub, also with a Relu before the QuantizeLinear.

Needs    (1) constant, positive, normal scales, and one operand with a single scale; (2) new scales
         that are normal, too, sums far from overflow, and a rounding error below one step of the
         result, which rules out operands much larger than a step.
Keeps    (1) zero points; (2) sums with other readers, and sums where one scale is already 1.
         Results next to a tie may move by one step, so the default pipeline does not have the pass.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.floats import float_info
from smelt.ir.pattern import one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import assumes, rule_pass
from smelt.passes.quantize.quantization import Quantization
from smelt.passes.quantize.round_trip import FLOATS, is_normal, largest_steps

ROUNDINGS = 8
"""How often the two forms together round a result.

The old form rounds a product, a sum and a quotient. The new form rounds two scales as well.
"""

_sum = op(
    ("Add", "Sub"),
    op("DequantizeLinear", var("x"), rest=True, name="a"),
    op("DequantizeLinear", var("y"), rest=True, name="b"),
    name="sum",
)
_result = one_of(op("Relu", _sum, name="relu"), _sum)


@rule(op("QuantizeLinear", _result, rest=True), same_shape=True)
def quantized_sum(m: Match, b: Builder) -> Replacement:
    """Rebuild the sum with divided scales, or return a Miss."""
    nodes = (m.node("a"), m.node("b"), m.root)
    quantizations = [Quantization.of(node) for node in nodes]
    known_quantizations = [q for q in quantizations if q is not None]
    scales = [q.scales(m.constants) for q in known_quantizations]
    arrays = [array for array in scales if array is not None]
    if len(known_quantizations) < len(nodes):
        return Miss("the element types or parameters of a quantization are unknown")
    if len(arrays) < len(nodes):
        return Miss("a scale is not constant")
    dtype = known_quantizations[0].scale.dtype
    if dtype not in FLOATS or any(q.real != {dtype} for q in known_quantizations):
        return Miss("the scales are not of one floating-point type")
    single = [place for place in (1, 0) if arrays[place].ndim == 0]
    if not single:  # needs 1
        return Miss("neither operand has one scale for all its elements")
    if any(arrays[place] == 1 for place in single):  # keeps 2
        return None
    unit = single[0]
    new_scales = [_divided(array, arrays[unit], dtype) for array in arrays]
    steps = [
        float(np.max(largest_steps(q, m.constants), initial=0)) for q in known_quantizations[:2]
    ]
    flaw = _why_inexact(arrays, new_scales, steps, dtype)
    return Miss(flaw) if flaw is not None else _rebuilt_sum(m, b, nodes, new_scales)


def _divided(array: np.ndarray, by: np.ndarray, dtype: ir.DataType) -> np.ndarray:
    """Return ``array / by`` rounded to ``dtype``."""
    with np.errstate(all="ignore"):
        return np.asarray(array / by).astype(dtype.numpy())


def _why_inexact(
    old: list[np.ndarray], new: list[np.ndarray], steps: list[float], dtype: ir.DataType
) -> str | None:
    """Return why the result might move by more than one step; None if it cannot.

    ``old`` and ``new`` are the scales of both operands and of the result, ``steps`` the largest
    ``|integer - zero_point|`` of both operands. So no sum is larger than ``reach = steps[0] * x +
    steps[1] * y``. ``ROUNDINGS`` roundings change it by a factor of at most ``(1 + eps / 2) **
    ROUNDINGS``, which must be less than one step ``z`` of the result.
    """
    info = float_info(dtype.numpy())
    for scales in (old, [array.astype(np.float64) for array in new]):
        if not all(is_normal(array, dtype) for array in scales):  # needs 2
            return "an old or new scale is not a positive normal number"
        x, y, z = (array.reshape(-1) for array in scales)
        reach = steps[0] * x.max(initial=0) + steps[1] * y.max(initial=0)
        if 2 * reach > float(info.max):
            return "the sum may overflow"
        error = reach / z.min(initial=np.inf) * ((1 + float(info.eps) / 2) ** ROUNDINGS - 1)
        if error >= 1:
            return "rounding may move the result by more than one step"
    return None


def _rebuilt_sum(
    m: Match, b: Builder, nodes: tuple[ir.Node, ...], scales: list[np.ndarray]
) -> ir.Value:
    """Return the quantized sum with the new ``scales``."""
    new_scales = [
        b.constant(_in_shape_of(scale, m.array(node.inputs[1], limit=None)))
        for node, scale in zip(nodes, scales, strict=True)
    ]
    operands = [
        b.like(node, node.inputs[0], scale, *node.inputs[2:])  # keeps 1
        for node, scale in zip(nodes[:2], new_scales, strict=False)
    ]
    total = b.like(m.node("sum"), *operands)
    if m.get("relu") is not None:
        total = b.op("Relu", total)
    return b.like(m.root, total, new_scales[2], *m.root.inputs[2:])


def _in_shape_of(scale: np.ndarray, old: np.ndarray | None) -> np.ndarray:
    """Return ``scale`` in the shape of the old one: one element may be a scalar or a vector."""
    return scale if old is None else scale.reshape(old.shape)


distributive_quantized_binary_op_scale_normalization = rule_pass(
    "distributive_quantized_binary_op_scale_normalization",
    __doc__,
    [quantized_sum],
    exactness=assumes("results next to a tie may move by one quantization step"),
    default=False,
    source="Core ML MIL: common::distributive_quantized_binary_op_scale_normalization",
)
