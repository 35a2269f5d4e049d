"""Remove the Reshapes that flatten the leading dims before a linear layer and restore them after.

    before   x: B,S,K ─> Reshape(-1,K) ─> Gemm(W, b) ─> Gelu ─> Reshape(B,S,N) ─> y
    after    x: B,S,K ─> MatMul(W) ─> Add(b) ─> Gelu ─> y

    before   x: B,S,H,D ─> Reshape(-1,H*D) ─> Gemm(W, b) ─> Reshape(B,S,N) ─> y
    after    x: B,S,H,D ─> Reshape(0,0,H*D) ─> MatMul(W) ─> Add(b) ─> y

Exporters flatten for each linear layer. Between the Reshapes there may be products with constant
matrices, elementwise operators, and elementwise operators with constant rows.

Needs    (1) leading dims that the second Reshape is proved to restore; (2) Gemm with alpha and beta
         of 1.
Keeps    (1) flat values with other readers.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.node_inputs import first_inputs
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.ir.walk import Walk, producer_of
from smelt.operators.elementwise import UNARY
from smelt.passes.base import rounding, rule_pass
from smelt.passes.simplify.merge_consecutive_reshapes import constant_shape

MOST_LAYERS = 8
"""Limit of nodes between the two Reshapes; longer chains are not followed."""


@rule(op("Reshape", var("flat"), rest=True), same_shape=True)
def flat_chain(m: Match, b: Builder) -> Replacement:
    """Rebuild the layers between the Reshapes on unflattened values."""
    walk = m.walk()
    chain = _chain(m, walk)
    if chain is None:
        return None
    if refusal := m.replaces(walk):  # keeps 1
        return refusal
    flatten, layers = chain
    x, result = flatten.inputs[0], m.root.outputs[0].shape
    if x is None or x.shape is None or result is None or len(x.shape) < 3:
        return None
    rank = _merged_dims(flatten)
    leading_dims = x.shape.dims[:rank]
    if len(result) <= len(leading_dims) or not all(
        map(same_dim, leading_dims, result.dims)
    ):  # needs 1
        return Miss("the result does not begin with the leading dims of x")
    value = x
    if rank < len(x.shape) - 1:
        value = b.op("Reshape", x, b.const_i64([0] * rank + [math.prod(_ints(x.shape, rank))]))
    for layer in layers:
        unflattened = _unflattened(layer, value, m, b)
        if isinstance(unflattened, Miss):
            return unflattened
        value = unflattened
    if len(result) == rank + 1:
        return value
    target = constant_shape(value.shape, result)
    if target is None:
        return Miss("the result has a dim of size 0, or several dims that are unknown")
    return b.op("Reshape", value, b.const_i64(target))


def _chain(m: Match, walk: Walk) -> tuple[ir.Node, list[ir.Node]] | None:
    """Return the Reshape that flattens and the layers between it and the root, in order, else None.

    One layer must be a product. ``walk`` records the layers, to check that nothing else reads them.
    """
    layers: list[ir.Node] = []
    value = m["flat"]
    while len(layers) <= MOST_LAYERS:
        flatten = producer_of(value, "Reshape")
        if flatten is not None:
            is_flat = flatten.graph is m.root.graph and _merges_leading_dims(flatten)
            has_product = any(layer.op_type in _PRODUCTS for layer in layers)
            return (flatten, layers[::-1]) if is_flat and has_product else None
        layer = walk.up(value, *_LAYERS)
        operand = _row_operand(layer, m) if layer is not None else None
        if layer is None or operand is None:
            return None
        layers.append(layer)
        value = operand
    return None


_PRODUCTS = ("MatMul", "Gemm")
_BY_ELEMENT = ("Add", "Mul", "Sub", "Div")
_LAYERS = (*sorted(UNARY), *_PRODUCTS, *_BY_ELEMENT)


def _merges_leading_dims(node: ir.Node) -> bool:
    """True if the Reshape merges several leading dims into one."""
    return _merged_dims(node) > 1


def _merged_dims(node: ir.Node) -> int:
    """Return how many leading dims ``node`` merges into the first of two dims; 0 if not proved.

    The other dims, such as heads, become the second dim: [B,S,8,64] as [B*S,512] gives 2.
    """
    x, flat = node.inputs[0], node.outputs[0].shape
    if x is None or x.shape is None or flat is None or len(flat) != 2:
        return 0
    rank = len(x.shape)
    if same_dim(x.shape[-1], flat[1]):
        return rank - 1
    for merged in range(rank - 2, 1, -1):
        if math.prod(_ints(x.shape, merged)) == flat[1]:
            return merged
    return 0


def _ints(shape: ir.Shape, start: int) -> list[int]:
    """Return the dims from ``start`` on; ``[-1]`` if one is not a number."""
    dims = [dim for dim in shape.dims[start:] if isinstance(dim, int)]
    return dims if len(dims) == len(shape) - start else [-1]


def _row_operand(node: ir.Node, m: Match) -> ir.Value | None:
    """Return the operand that the layer processes row by row if the others are constants, else
    None."""
    if node.op_type in UNARY:
        return node.inputs[0]
    constant = [m.constants.get(v, limit=None) is not None for v in node.inputs]
    if node.op_type in _PRODUCTS:
        return node.inputs[0] if constant[0] is False and all(constant[1:]) else None
    if node.op_type in _BY_ELEMENT and constant.count(False) == 1:
        return node.inputs[constant.index(False)]
    return None


def _unflattened(layer: ir.Node, x: ir.Value, m: Match, b: Builder) -> ir.Value | Miss:
    """Return ``layer`` rebuilt on ``x``, which has all leading dims; or a Miss."""
    if layer.op_type in UNARY:
        return b.like(layer, x)
    if layer.op_type == "Gemm":
        return _product_of_gemm(layer, x, m, b)
    operands: list[ir.Value | None] = []
    for value in layer.inputs:
        array = m.array(value, limit=None)
        if array is None:
            operands.append(x)
        elif layer.op_type == "MatMul":
            operands.append(value if array.ndim == 2 else None)
        else:
            operands.append(_row(value, array, b))
    if None not in operands:
        return b.like(layer, *operands)
    if layer.op_type == "MatMul":
        return Miss("the weight is not a matrix")
    return Miss("a constant has several rows")


def _product_of_gemm(gemm: ir.Node, x: ir.Value, m: Match, b: Builder) -> ir.Value | Miss:
    """Return ``gemm``, which accepts matrices only, as MatMul and Add on ``x``; or a Miss."""
    if opset.attribute(gemm, "transA", m.opset):
        return Miss("transA of the Gemm is 1")
    if opset.attribute(gemm, "alpha", m.opset) != 1:  # needs 2
        return Miss("alpha of the Gemm is not 1")
    _, weight, term = first_inputs(gemm, 3)
    if opset.attribute(gemm, "transB", m.opset):
        array = m.array(weight, limit=None)
        assert array is not None
        weight = b.constant(np.ascontiguousarray(array.T))
    product = b.op("MatMul", x, weight)
    if term is None:
        return product
    array = m.array(term, limit=None)
    row = _row(term, array, b) if array is not None else None
    if row is None:
        return Miss("the bias of the Gemm is not a constant of one row")
    if opset.attribute(gemm, "beta", m.opset) != 1:
        return Miss("beta of the Gemm is not 1")
    return b.op("Add", product, row)


def _row(value: ir.Value | None, array: np.ndarray, b: Builder) -> ir.Value | None:
    """Return the constant ``value``, whose ``array`` is given, as a vector or scalar.

    None if it varies from row to row: it would not broadcast along the restored dims.
    """
    if array.ndim <= 1:
        return value
    return b.constant(array[0]) if array.ndim == 2 and array.shape[0] == 1 else None


unflatten_matmul = rule_pass(
    "unflatten_matmul",
    __doc__,
    [flat_chain],
    exactness=rounding(4),
    before=("fuse_matmul_weight_bias",),
)
