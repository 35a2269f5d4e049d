"""``MatMulBnb4``: 4-bit weights that index a table of 16 floats, with one factor per block."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.declare import Arguments, Attributes, Computed, int_of
from smelt.operators.inputs import present
from smelt.operators.onnxruntime.microsoft.declared import Values, ints, operator
from smelt.operators.onnxruntime.microsoft.packed import infer_product

_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
TABLES = (
    (*_FP4, *(-number for number in _FP4)),
    (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    ),
)
"""The number of each code, by ``quant_type``: FP4 and NF4 of the library bitsandbytes."""


def _shape(attributes: Attributes) -> tuple[int, int]:
    """Return the shape of the weights: N,K as bitsandbytes stores them, or K,N."""
    n, k = int_of(attributes, "N"), int_of(attributes, "K")
    return (n, k) if attributes["transB"] else (k, n)


def _product(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the product with the decoded weights."""
    a, codes, factors = present(inputs)
    shape, block = _shape(attributes), int_of(attributes, "block_size")
    indices = np.stack([codes >> 4, codes & 15], -1).reshape(-1)[: prod(shape)]
    table = np.asarray(TABLES[int_of(attributes, "quant_type")], np.float32)
    weights = table[indices] * np.repeat(factors, block)[: prod(shape)]
    weights = weights.reshape(shape)
    result = a @ (weights.T if attributes["transB"] else weights)
    return (result.astype(a.dtype),)


def _body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build a table lookup of the codes, times the factor of each block, then the product."""
    a, codes, factors = present(inputs)
    shape, block = _shape(attributes), int_of(attributes, "block_size")
    kind = int_of(attributes, "quant_type")
    count = prod(shape)
    if kind not in (0, 1) or a.dtype is None:
        return None
    integers = b.op("Cast", codes, to=int(ir.DataType.INT32))
    high = b.op("Div", integers, b.const_like(16, integers))
    low = b.op("Sub", integers, b.op("Mul", high, b.const_like(16, integers)))
    last = b.const_i64([-1])
    pairs = b.op("Concat", *(b.op("Unsqueeze", x, last) for x in (high, low)), axis=-1)
    table = b.constant(np.asarray(TABLES[kind], a.dtype.numpy()))
    numbers = b.op("Gather", table, b.op("Reshape", pairs, last), axis=0)
    block_of = b.constant((np.arange(count + count % 2) // block).clip(0, (count - 1) // block))
    scaled = b.op("Mul", numbers, b.op("Gather", factors, block_of, axis=0))
    if count % 2:
        scaled = b.op("Slice", scaled, *(b.const_i64([i]) for i in (0, count, 0)))
    weights = b.op("Reshape", scaled, b.const_i64(shape))
    transposed = b.op("Transpose", weights, perm=[1, 0]) if attributes["transB"] else weights
    return (b.op("MatMul", a, transposed),)


OPERATORS = (
    operator(
        "MatMulBnb4",
        "a product with weights of 4 bits that stand for 16 floats, a factor a block",
        inputs=("A", "B", "absmax"),
        outputs=("Y",),
        attributes=(
            *ints(K=None, N=None, block_size=None, quant_type=None, training_mode=0, transB=1),
        ),
        infer=infer_product,
        reference=_product,
        body=_body,
        any_rank=True,
    ),
)
