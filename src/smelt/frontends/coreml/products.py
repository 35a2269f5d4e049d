"""Readers of matrix products and attention."""

from __future__ import annotations

from math import sqrt

import onnx_ir as ir

from smelt.frontends.coreml.call import Call
from smelt.frontends.coreml.registry import reads


@reads("linear")
def _linear(call: Call) -> ir.Value:
    """Return ``x @ weight.T + bias``.

    From iOS 17 on, weights may have a wider type than ``x``; they are cast to the type of ``x``.
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
    """Return ``x @ y``, where ``transpose_x`` and ``transpose_y`` transpose an operand first."""
    operands = []
    for name in ("x", "y"):
        is_transposed = call.flag(f"transpose_{name}") and call.rank(call.value(name)) > 1
        operands.append(call.flipped(name) if is_transposed else call.value(name))
    return call.op("MatMul", *operands)


@reads("einsum")
def _einsum(call: Call) -> ir.Value:
    """Return the product that ``equation`` states."""
    return call.op("Einsum", *call.values("values"), equation=call.word("equation"))


@reads("scaled_dot_product_attention")
def _attention(call: Call) -> ir.Value:
    """Return ``softmax(query @ key.T / sqrt(E) + mask) @ value``; E is the size of the last axis.

    Where a bool mask is False, scores are -inf.
    """
    query, key, value = (call.value(name) for name in ("query", "key", "value"))
    mask = call.optional("attn_mask")
    if call.rank(query) == call.rank(key) == call.rank(value) == 4:
        return call.op("Attention", query, key, value, mask)
    sizes = call.sizes(query, [-1])
    if sizes is None:
        raise call.refused("the size of the embedding is open")
    scores = call.op("MatMul", query, call.flipped("key"))
    scores = call.op("Mul", scores, call.filled(1 / sqrt(sizes[0]), scores))
    if mask is not None and mask.dtype == ir.DataType.BOOL:
        scores = call.op("Where", mask, scores, call.filled(float("-inf"), scores))
    elif mask is not None:
        scores = call.op("Add", scores, mask)
    return call.op("MatMul", call.op("Softmax", scores, axis=-1), value)
