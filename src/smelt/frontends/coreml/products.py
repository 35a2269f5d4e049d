"""Read matrix products and attention."""

from __future__ import annotations

from math import sqrt

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads


@reads("linear")
def _linear(call: Call) -> ir.Value:
    """Return ``x`` times the transposed ``weight`` plus ``bias``.

    Weights may be wider than ``x`` since iOS 17; they are then rounded to its type.
    """
    x, bias = call.x, call.optional("bias")
    if bias is not None:
        bias = call.like("bias", x)
    if call.rank(x) == 2:
        return call.op("Gemm", x, call.like("weight", x), bias, transB=1)
    weight = call.flipped("weight")
    if weight.dtype != x.dtype and x.dtype is not None:
        weight = call.builder.cast(weight, x.dtype)
    product = call.op("MatMul", x, weight)
    return product if bias is None else call.op("Add", product, bias)


@reads("matmul")
def _matmul(call: Call) -> ir.Value:
    """Return the product of matrices, each transposed first if its flag says so."""
    sides = []
    for name in ("x", "y"):
        turned = call.flag(f"transpose_{name}") and call.rank(call.value(name)) > 1
        sides.append(call.flipped(name) if turned else call.value(name))
    return call.op("MatMul", *sides)


@reads("einsum")
def _einsum(call: Call) -> ir.Value:
    """Return the product that ``equation`` states."""
    return call.op("Einsum", *call.values("values"), equation=call.word("equation"))


@reads("scaled_dot_product_attention")
def _attention(call: Call) -> ir.Value:
    """Return softmax(query times key / sqrt(E) + mask) times value; a boolean mask excludes
    elements."""
    query, key, value = (call.value(name) for name in ("query", "key", "value"))
    mask = call.optional("attn_mask")
    if call.rank(query) == call.rank(key) == call.rank(value) == 4:
        return call.op("Attention", query, key, value, mask)
    sizes = call.sizes(query, [-1])
    if sizes is None:
        raise call.refused("the size of the embedding is open")
    turned = call.flipped("key")
    scores = call.op("MatMul", query, turned)
    scores = call.op("Mul", scores, call.filled(1 / sqrt(sizes[0]), scores))
    if mask is not None and mask.dtype == ir.DataType.BOOL:
        scores = call.op("Where", mask, scores, call.filled(float("-inf"), scores))
    elif mask is not None:
        scores = call.op("Add", scores, mask)
    return call.op("MatMul", call.op("Softmax", scores, axis=-1), value)
