"""``MatMulNBits`` and ``GatherBlockQuantized``: packed weights of a few bits, one scale per
block."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.same_shape import Dim
from smelt.operators.declare import Arguments, Attributes, Computed, Result, int_of
from smelt.operators.inputs import filled, first, input_at, present
from smelt.operators.onnxruntime.microsoft.declared import Values, ints, operator

BITS = (2, 4, 8)


def unpacked(packed: np.ndarray, bits: int, count: int) -> np.ndarray:
    """Return the first ``count`` numbers of ``bits`` in the bytes of the last axis.

    The lowest bits of a byte come first.
    """
    planes = [packed >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)]
    codes = np.stack(planes, -1).reshape(*packed.shape[:-1], -1)
    return np.asarray(codes[..., :count])


def infer_product(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return ``[..., N]`` for ``[..., K]``."""
    a = first(inputs)
    if a.shape is None or not len(a.shape):
        return (Result(a.dtype, None),)
    return (Result(a.dtype, ir.Shape([*a.shape.dims[:-1], int_of(attributes, "N")])),)


def zero_points(zeros: np.ndarray | None, n: int, blocks: int, bits: int) -> np.ndarray:
    """Return a zero point for each of ``blocks`` of ``n`` rows; by default half of the code
    range."""
    if zeros is None:
        return np.full((n, blocks), 1 << (bits - 1), np.float32)
    if zeros.dtype == np.uint8:
        zeros = unpacked(zeros.reshape(n, -1), bits, blocks)
    return zeros.reshape(n, blocks).astype(np.float32)


def product(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return ``a @ weights.T``; a weight is (code - zero point) * scale of its block."""
    a, codes, scales = present(inputs[:3])
    zeros, row_order, bias = filled(inputs[3:], 3)
    columns, rows, bits, block_size = (
        int_of(attributes, name) for name in ("N", "K", "bits", "block_size")
    )
    blocks = -(-rows // block_size)
    weight_codes = unpacked(codes.reshape(columns, -1), bits, blocks * block_size).astype(
        np.float64
    )
    offsets = zero_points(zeros, columns, blocks, bits)
    block_of = (
        np.arange(rows) // block_size if row_order is None else row_order.astype(np.int64)[:rows]
    )
    factors = scales.reshape(columns, blocks).astype(np.float64)
    weights = (weight_codes[:, :rows] - offsets[:, block_of]) * factors[:, block_of]
    with np.errstate(invalid="ignore"):  # infinity by 0 is NaN, as in the kernel
        result = a.astype(np.float64) @ weights.T
    result = result if bias is None else result + bias
    return (result.astype(a.dtype),)


def product_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build the weights from codes, zero points and scales, then the product."""
    a, codes, scales, zeros, row_order, bias = filled(inputs, 6)
    columns, rows, bits, block_size = (
        int_of(attributes, name) for name in ("N", "K", "bits", "block_size")
    )
    if a is None or codes is None or scales is None or bits not in BITS:
        return None
    if attributes["weight_prepacked"]:
        return None
    blocks = -(-rows // block_size)
    numbers = _numbers(b, codes, bits, (columns, blocks * block_size), a)
    factors = b.op("Reshape", scales, b.const_i64([columns, blocks]))
    offsets = None
    if zeros is not None and zeros.dtype == codes.dtype:
        codes_per_byte = 8 // bits
        zero_codes = _numbers(
            b, zeros, bits, (columns, -(-blocks // codes_per_byte) * codes_per_byte), a
        )
        offsets = _first_columns(b, zero_codes, blocks) if blocks % codes_per_byte else zero_codes
    elif zeros is not None:
        offsets = b.op("Reshape", zeros, b.const_i64([columns, blocks]))
    spread: tuple[int, ...] = (columns, blocks, block_size)
    if row_order is not None:
        spread = (columns, rows)
        numbers = _first_columns(b, numbers, rows) if blocks * block_size > rows else numbers
        factors = b.op("Gather", factors, row_order, axis=1)
        offsets = None if offsets is None else b.op("Gather", offsets, row_order, axis=1)
    else:
        factors = b.op("Unsqueeze", factors, b.const_i64([2]))
        offsets = None if offsets is None else b.op("Unsqueeze", offsets, b.const_i64([2]))
    offsets = b.const_like(1 << (bits - 1), a) if offsets is None else offsets
    numbers = b.op("Reshape", numbers, b.const_i64(spread))
    weights = b.op("Mul", b.op("Sub", numbers, offsets), factors)
    if row_order is None:
        weights = b.op("Reshape", weights, b.const_i64([columns, blocks * block_size]))
        weights = _first_columns(b, weights, rows) if blocks * block_size > rows else weights
    result = b.op("MatMul", a, b.op("Transpose", weights, perm=[1, 0]))
    return (result if bias is None else b.op("Add", result, bias),)


def _first_columns(b: Builder, rows: ir.Value, count: int) -> ir.Value:
    """Build the first ``count`` columns of a matrix."""
    return b.op("Slice", rows, *(b.const_i64([i]) for i in (0, count, 1)))


def _numbers(
    b: Builder, codes: ir.Value, bits: int, shape: Sequence[int] | ir.Value, like: ir.Value
) -> ir.Value:
    """Build packed codes as numbers of the type of ``like``, in ``shape``."""
    assert like.dtype is not None
    numbers = b.op("Cast", codes, to=int(like.dtype))
    if bits < 8:
        quotients = [numbers]
        for shift in range(bits, 8, bits):
            quotients.append(b.op("Floor", b.op("Div", numbers, b.const_like(1 << shift, like))))
        radix = b.const_like(1 << bits, like)
        planes = [b.op("Sub", low, b.op("Mul", high, radix)) for low, high in pairwise(quotients)]
        last = b.const_i64([-1])
        numbers = b.op(
            "Concat", *(b.op("Unsqueeze", p, last) for p in (*planes, quotients[-1])), axis=-1
        )
    return b.op("Reshape", numbers, b.const_i64(shape) if isinstance(shape, Sequence) else shape)


def _axes(inputs: Values, attributes: Attributes) -> tuple[int, int] | None:
    """Return the axis to gather along and the axis of blocks; None if ranks are unknown."""
    data, indices = first(inputs), input_at(inputs, 1)
    if data.shape is None or indices is None or indices.shape is None:
        return None
    rank = len(data.shape)
    return int_of(attributes, "gather_axis") % rank, int_of(attributes, "quantize_axis") % rank


def _codes_per_element(data: ir.Value | None, attributes: Attributes) -> int:
    """Return the number of codes in one element of ``data``; raises ValueError for other bits."""
    packed = data is not None and data.dtype == ir.DataType.UINT8
    bits = int_of(attributes, "bits")
    if packed and bits not in BITS:
        raise ValueError(f"there are no codes of {bits} bits")
    return 8 // bits if packed else 1


def infer_rows(inputs: Values, attributes: Attributes) -> Sequence[Result]:
    """Return the type of a Gather of the unpacked numbers."""
    data, indices, scales = first(inputs), input_at(inputs, 1), input_at(inputs, 2)
    dtype = None if scales is None else scales.dtype
    axes = _axes(inputs, attributes)
    if axes is None:
        return (Result(dtype, None),)
    assert data.shape is not None
    assert indices is not None
    assert indices.shape is not None
    dims: list[Dim] = list(data.shape.dims)
    last = dims[-1]
    dims[-1] = (
        last * _codes_per_element(data, attributes)
        if isinstance(last, int)
        else ir.SymbolicDim(None)
    )
    dims[axes[0] : axes[0] + 1] = indices.shape.dims
    return (Result(dtype, ir.Shape(dims)),)


def rows(inputs: Arguments, attributes: Attributes) -> Computed:
    """Return the selected elements, each (code - zero point) * scale of its block."""
    data, indices, scales = present(inputs[:3])
    zeros = input_at(inputs, 3)
    bits, block = int_of(attributes, "bits"), int_of(attributes, "block_size")
    axis = int_of(attributes, "quantize_axis") % data.ndim
    offsets = np.zeros(()) if zeros is None else zeros.astype(np.float32)
    if data.dtype == np.uint8:
        count = scales.shape[axis]
        offsets = np.asarray(1 << (bits - 1) if zeros is None else unpacked(zeros, bits, count))
        data = unpacked(data, bits, 8 // bits * data.shape[-1])

    def spread(per_block: np.ndarray) -> np.ndarray:
        """Return one number per element from one ``per_block``."""
        return np.repeat(per_block, block, axis).take(range(data.shape[axis]), axis)

    offset_of_element = spread(offsets) if np.ndim(offsets) else offsets
    real = (data.astype(np.float32) - offset_of_element) * spread(scales.astype(np.float32))
    selected = real.take(indices.astype(np.int64), int_of(attributes, "gather_axis"))
    return (selected.astype(scales.dtype),)


def rows_body(b: Builder, inputs: Values, attributes: Attributes) -> tuple[ir.Value, ...] | None:
    """Build a Gather of bytes, then the unpacking; ONNX gathers no sub-byte types.

    None for blocks that are not along the last axis, or that do not fill it.
    """
    data, indices, scales, zeros = filled(inputs, 4)
    axes = _axes(inputs, attributes)
    if axes is None or data is None or indices is None or scales is None or scales.dtype is None:
        return None
    gather_axis, axis = axes
    block = int_of(attributes, "block_size")
    if data.dtype != ir.DataType.UINT8:
        if b.model.opset_imports.get("", 0) < 21:
            return None
        dequantized = b.op("DequantizeLinear", data, scales, zeros, axis=axis, block_size=block)
        return (b.op("Gather", dequantized, indices, axis=gather_axis),)
    assert data.shape is not None
    assert indices.shape is not None
    rank = len(data.shape)
    if axis != rank - 1 or gather_axis == axis:
        return None
    bits, size, count = int_of(attributes, "bits"), data.shape[-1], scales.shape
    blocks = None if count is None else count[-1]
    if bits not in BITS or not isinstance(size, int) or not isinstance(blocks, int):
        return None
    row_length = size * _codes_per_element(data, attributes)
    if row_length != blocks * block:
        return None
    gathered_inputs = [
        None if value is None else b.op("Gather", value, indices, axis=gather_axis)
        for value in (data, scales, zeros)
    ]
    codes, factors, zero_points = gathered_inputs
    assert codes is not None
    assert factors is not None
    leading_dims = [0] * (rank + len(indices.shape) - 2)
    numbers = _numbers(b, codes, bits, [*leading_dims, blocks, block], factors)
    offsets = b.const_like(1 << (bits - 1), factors)
    if zero_points is not None:
        offsets = _block_offsets(b, zero_points, bits, [*leading_dims, blocks], factors)
    dequantized = b.op(
        "Mul", b.op("Sub", numbers, offsets), b.op("Unsqueeze", factors, b.const_i64([-1]))
    )
    return (b.op("Reshape", dequantized, b.const_i64([*leading_dims, row_length])),)


def _block_offsets(
    b: Builder, points: ir.Value, bits: int, shape: Sequence[int], like: ir.Value
) -> ir.Value:
    """Build packed zero ``points`` as numbers ``[*shape, 1]``; the last of ``shape`` are blocks."""
    *leading, blocks = shape
    codes_per_byte = 8 // bits
    padded = -(-blocks // codes_per_byte) * codes_per_byte
    numbers = _numbers(b, points, bits, [*leading, padded], like)
    if padded > blocks:
        numbers = b.op("Slice", numbers, *(b.const_i64([i]) for i in (0, blocks, -1, 1)))
    return b.op("Unsqueeze", numbers, b.const_i64([-1]))


OPERATORS = (
    operator(
        "MatMulNBits",
        "a product with weights of a few bits, packed in blocks along their rows",
        inputs=("A", "B", "scales", "zero_points?", "g_idx?", "bias?"),
        outputs=("Y",),
        attributes=(
            *ints(K=None, N=None, bits=4, block_size=None, accuracy_level=0, weight_prepacked=0),
        ),
        infer=infer_product,
        reference=product,
        body=product_body,
        any_rank=True,
    ),
    operator(
        "GatherBlockQuantized",
        "Gather of numbers of a few bits, packed in blocks along an axis, as floats",
        inputs=("data", "indices", "scales", "zero_points?"),
        outputs=("output",),
        attributes=ints(bits=4, block_size=128, quantize_axis=1, gather_axis=0),
        least_ranks={"data": 1},
        infer=infer_rows,
        reference=rows,
        body=rows_body,
    ),
)
