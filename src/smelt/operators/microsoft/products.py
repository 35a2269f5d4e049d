"""``FusedMatMul``, a product with transposes and a factor; ``MatMulNBits``, of packed weights."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.shapes import Dim
from smelt.operators.declare import Attributes, Computed, Given, Result, int_of
from smelt.operators.microsoft.declared import Values, first, floats, given, ints, operator


def _order(rank: int, attributes: Attributes, side: str) -> list[int]:
    """The axes of an operand as the product reads them; vectors are never transposed."""
    order = list(range(rank))
    if rank > 1 and attributes[f"transBatch{side}"]:
        order = [*order[1:-1], 0, order[-1]]
    if rank > 1 and attributes[f"trans{side}"]:
        order[-2:] = order[:-3:-1]
    return order


def _together(*stacks: Sequence[Dim]) -> list[Dim]:
    """The dims of stacks that broadcast against each other, None where they are not known."""
    found: list[Dim] = []
    for column in zip_longest(*(stack[::-1] for stack in stacks), fillvalue=1):
        sizes = {dim for dim in column if not (isinstance(dim, int) and dim == 1)}
        numbers = [dim for dim in sizes if isinstance(dim, int)]
        known = sizes if len(sizes) < 2 else numbers
        found.append(next(iter(known), 1) if len(sizes) < 2 or numbers else ir.SymbolicDim(None))
    return found[::-1]


def infer_product(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """As MatMul of the operands after their transposes."""
    a, b = first(inputs), given(inputs, 1)
    if b is None or a.shape is None or b.shape is None:
        return (Result(a.dtype, None),)
    left = [a.shape[axis] for axis in _order(len(a.shape), attributes, "A")]
    right = [b.shape[axis] for axis in _order(len(b.shape), attributes, "B")]
    if not left or not right:
        raise ValueError("a product takes no scalar")
    inner = left[-1], right[-2] if len(right) > 1 else right[0]
    if all(isinstance(dim, int) for dim in inner) and inner[0] != inner[1]:
        raise ValueError(f"rows of {inner[0]} meet columns of {inner[1]}")
    dims = [*_together(left[:-2], right[:-2]), *left[-2:-1]]
    return (Result(a.dtype, ir.Shape(dims + right[-1:] if len(right) > 1 else dims)),)


def product(inputs: Given, attributes: Attributes) -> Computed:
    a, b = inputs
    assert a is not None
    assert b is not None
    left = a.transpose(_order(a.ndim, attributes, "A"))
    right = b.transpose(_order(b.ndim, attributes, "B"))
    return ((np.matmul(left, right) * attributes["alpha"]).astype(a.dtype),)


def product_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...]:
    """Transposes, the product, and the factor where it is not 1."""
    operands = []
    for value, side in zip(inputs, "AB", strict=True):
        assert value is not None
        assert value.shape is not None
        order = _order(len(value.shape), attributes, side)
        moved = order != sorted(order)
        operands.append(b.op("Transpose", value, perm=order) if moved else value)
    result, alpha = b.op("MatMul", *operands), attributes["alpha"]
    assert isinstance(alpha, int | float)
    return (result if alpha == 1 else b.op("Mul", result, b.const_like(alpha, result)),)


FUSED_MATMUL = operator(
    "FusedMatMul",
    "a product of operands that are transposed first, times a factor",
    inputs=("A", "B"),
    outputs=("Y",),
    attributes=(*ints(transA=0, transB=0, transBatchA=0, transBatchB=0), *floats(alpha=1.0)),
    infer=infer_product,
    reference=product,
    body=product_body,
)


def infer_packed(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """``[..., K]`` becomes ``[..., N]``."""
    a = first(inputs)
    if a.shape is None or not len(a.shape):
        return (Result(a.dtype, None),)
    return (Result(a.dtype, ir.Shape([*a.shape.dims[:-1], int_of(attributes, "N")])),)


def unpacked(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """The first ``count`` numbers of ``bits`` in the bytes of the last axis, lowest bits first."""
    unit = np.unpackbits(packed.astype(np.uint8), axis=-1, bitorder="little")
    whole = unit[..., : unit.shape[-1] // bits * bits].reshape(*unit.shape[:-1], -1, bits)
    return (whole @ (1 << np.arange(bits, dtype=np.uint8)).astype(np.int64))[..., :count]


def packed_product(inputs: Given, attributes: Attributes) -> Computed:
    """The product with the weights, each block less its zero point and times its scale."""
    a, codes, scales, zeros, places, bias = (*inputs, *(None,) * 6)[:6]
    assert a is not None
    assert codes is not None
    assert scales is not None
    n, k, bits, block = (int_of(attributes, name) for name in ("N", "K", "bits", "block_size"))
    blocks = -(-k // block)
    numbers = unpacked(codes.reshape(n, -1), bits, blocks * block).astype(np.float64)
    offsets: np.ndarray = np.full((n, blocks), 1 << (bits - 1), np.float64)
    if zeros is not None and zeros.dtype == np.uint8:
        offsets = unpacked(zeros.reshape(n, -1), bits, blocks).astype(np.float64)
    elif zeros is not None:
        offsets = zeros.reshape(n, blocks).astype(np.float64)
    block_of = np.arange(k) // block if places is None else places.astype(np.int64)[:k]
    factors = scales.reshape(n, blocks).astype(np.float64)
    weights = (numbers[:, :k] - offsets[:, block_of]) * factors[:, block_of]
    result = a.astype(np.float64) @ weights.T
    result = result if bias is None else result + bias
    return (result.astype(a.dtype),)


def packed_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Nibbles or bytes as numbers, each block less its zero point and times its scale."""
    a, codes, scales, zeros, places, bias = (*inputs, *(None,) * 6)[:6]
    n, k, bits, block = (int_of(attributes, name) for name in ("N", "K", "bits", "block_size"))
    if a is None or codes is None or places is not None or bits not in (4, 8):
        return None
    if attributes["weight_prepacked"] or (zeros is not None and zeros.dtype != codes.dtype):
        return None
    blocks = -(-k // block)
    numbers = _numbers(b, codes, bits, (n, blocks, block), a)
    offsets = b.const_like(1 << (bits - 1), a)
    if zeros is not None:
        whole = blocks + blocks % 2 if bits == 4 else blocks
        rows = _numbers(b, zeros, bits, (n, whole), a)
        if whole > blocks:
            rows = b.op("Slice", rows, *(b.const_i64([i]) for i in (0, blocks, 1)))
        offsets = b.op("Unsqueeze", rows, b.const_i64([2]))
    factors = b.op("Reshape", scales, b.const_i64([n, blocks, 1]))
    weights = b.op("Mul", b.op("Sub", numbers, offsets), factors)
    weights = b.op("Reshape", weights, b.const_i64([n, blocks * block]))
    if blocks * block > k:
        weights = b.op("Slice", weights, *(b.const_i64([i]) for i in (0, k, 1)))
    result = b.op("MatMul", a, b.op("Transpose", weights, perm=[1, 0]))
    return (result if bias is None else b.op("Add", result, bias),)


def _numbers(
    b: Builder, codes: ir.Value, bits: int, shape: Sequence[int], like: ir.Value
) -> ir.Value:
    """Packed codes as numbers of the type of ``like``, in ``shape``."""
    assert like.dtype is not None
    whole = b.op("Cast", codes, to=int(like.dtype))
    if bits == 4:
        high = b.op("Floor", b.op("Div", whole, b.const_like(16, like)))
        low = b.op("Sub", whole, b.op("Mul", high, b.const_like(16, like)))
        last = b.const_i64([-1])
        pair = (b.op("Unsqueeze", b.op("Reshape", half, last), last) for half in (low, high))
        whole = b.op("Concat", *pair, axis=-1)
    return b.op("Reshape", whole, b.const_i64(shape))


MATMUL_NBITS = operator(
    "MatMulNBits",
    "a product with weights of a few bits, packed in blocks along their rows",
    inputs=("A", "B", "scales", "zero_points?", "g_idx?", "bias?"),
    outputs=("Y",),
    attributes=(
        *ints(K=None, N=None, bits=4, block_size=None, accuracy_level=0, weight_prepacked=0),
    ),
    infer=infer_packed,
    reference=packed_product,
    body=packed_body,
    any_rank=True,
)
OPERATORS = (FUSED_MATMUL, MATMUL_NBITS)
