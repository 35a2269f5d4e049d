"""Rows of ``opset_lowerings.py`` for QuantizeLinear and DequantizeLinear.

Blocks, 16 bits and constants of 4 bits are written as the arithmetic that defines them.
"""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of
from smelt.ir.node_inputs import first_inputs
from smelt.ir.rewrite import Rewriter

FLOAT, INT32 = ir.DataType.FLOAT, ir.DataType.INT32
SMALL = frozenset({ir.DataType.INT4, ir.DataType.UINT4})
OF_21 = SMALL | {ir.DataType.INT16, ir.DataType.UINT16}
"""Integers that QuantizeLinear and DequantizeLinear take from opset 21 on."""


def dequantize_23(node: ir.Node, rewriter: Rewriter) -> str:
    """Replace an `output_dtype` other than the type of the scale by a Cast of the result.

    Returns why not, else ''.
    """
    to = node.attributes.get_int("output_dtype", 0)
    scale, result = node.inputs[1], node.outputs[0]
    assert scale is not None
    node.attributes.pop("output_dtype", None)
    if not to or scale.dtype == to:
        return ""
    b = rewriter.builder(node, [node], "lower_opset")
    operands = (node.inputs[0], b.cast(scale, FLOAT), *node.inputs[2:])
    wide = b.like(node, *operands)
    result.dtype = ir.DataType(to)
    rewriter.replace(node, [b.cast(wide, ir.DataType(to))], trust_shape=True)
    return ""


def dequantize_21(node: ir.Node, rewriter: Rewriter) -> str:
    """Compute blocked scales, 16-bit integers and 4-bit constants by Sub and Mul.

    Returns why not, else ''.
    """
    x, scale, zero = first_inputs(node, 3)
    assert x is not None
    assert scale is not None
    if x.dtype not in OF_21 and not node.attributes.get_int("block_size", 0):
        return ""
    if x.dtype is None or not x.dtype.is_integer() or scale.dtype is None:
        return "the element types are no integers and a float, or are not known"
    b = rewriter.builder(node, [node], "lower_opset")
    number, offset = (_int32(b, value) for value in (x, zero))
    if number is None or (zero is not None and offset is None):
        return f"{x.dtype.name.lower()} values that are computed have no type of an earlier opset"
    layout = _BlockLayout.of(node, b)
    if layout is None:
        b.discard()
        return "its axis, its rank or the sizes of its blocks are not known"
    blocks = layout.split_blocks(number)
    centred = blocks if offset is None else b.op("Sub", blocks, layout.broadcast(offset))
    scaled = b.op("Mul", b.cast(centred, FLOAT), b.cast(layout.broadcast(scale), FLOAT))
    result = b.cast(layout.restore(scaled, number), scale.dtype)
    rewriter.replace(node, [result], trust_shape=True)
    return ""


def quantize_21(node: ir.Node, rewriter: Rewriter) -> str:
    """Write a QuantizeLinear of opset 21 for earlier opsets.

    A node with blocks or with a 16-bit result becomes Div, Round, Add and Clip. Any other node only
    loses its attribute ``output_dtype``. Returns why the node cannot be written, else ''.
    """
    x, scale, zero = first_inputs(node, 3)
    result, block_size = node.outputs[0], node.attributes.get_int("block_size", 0)
    assert x is not None
    assert scale is not None
    requested = node.attributes.get_int("output_dtype", 0)
    dtype = zero.dtype if zero is not None else ir.DataType(requested or ir.DataType.UINT8)
    if dtype is None or x.dtype is None:
        return "the element types are not known"
    if not block_size and dtype not in OF_21 and (zero is not None or dtype == ir.DataType.UINT8):
        node.attributes.pop("output_dtype", None)
        return ""
    if dtype in SMALL or not dtype.is_integer():
        return f"{dtype.name.lower()} results have no earlier form"
    b = rewriter.builder(node, [node], "lower_opset")
    layout = _BlockLayout.of(node, b)
    if layout is None:
        b.discard()
        return "its axis, its rank or the sizes of its blocks are not known"
    wide_input, factor = (
        b.cast(value, FLOAT) for value in (layout.split_blocks(x), layout.broadcast(scale))
    )
    number = b.op("Round", b.op("Div", wide_input, factor))
    if zero is not None:
        number = b.op("Add", number, b.cast(layout.broadcast(zero), FLOAT))
    limits = np.iinfo(dtype.numpy())
    number = b.op("Clip", number, *(b.const_like(n, number) for n in (limits.min, limits.max)))
    result.dtype = dtype
    rewriter.replace(node, [b.cast(layout.restore(number, x), dtype)], trust_shape=True)
    return ""


def _int32(b: Builder, value: ir.Value | None) -> ir.Value | None:
    """Return ``value`` as int32; None for computed values of 4 bits, which no Cast takes."""
    if value is None:
        return None
    if value.dtype not in SMALL:
        return b.cast(value, INT32)
    tensor = tensor_of(value)
    return None if tensor is None else b.constant(tensor.numpy().astype(np.int32))


class _BlockLayout:
    """Reshapes data, scales and zero points of one node so that they broadcast together.

    With blocks, an axis of n * size elements becomes two axes of n and size.
    """

    def __init__(self, b: Builder, x: ir.Value, rank: int, axis: int, size: int) -> None:
        self.b = b
        self.x = x
        self.rank = rank
        self.axis = axis
        self.size = size

    @classmethod
    def of(cls, node: ir.Node, b: Builder) -> _BlockLayout | None:
        """Return the reshapes for ``node``; None if its axis, rank or block sizes are not known."""
        x, scale = node.inputs[:2]
        if x is None or scale is None or x.shape is None or scale.shape is None:
            return None
        rank, axis = len(x.shape), node.attributes.get_int("axis", 1)
        size = node.attributes.get_int("block_size", 0)
        if not len(scale.shape):
            return cls(b, x, 0, 0, 0)
        if not -rank <= axis < rank:
            return None
        axis %= rank
        if size:
            length, *later_dims = x.shape[axis:]
            open_sizes = [dim for dim in later_dims if not isinstance(dim, int)]
            if not isinstance(length, int) or length % size or len(open_sizes) > 1:
                return None
        return cls(b, x, rank, axis, size)

    def split_blocks(self, value: ir.Value) -> ir.Value:
        """Return ``value``, which has the shape of the data, with a separate axis for the elements
        of a block.
        """
        if not self.size:
            return value
        assert self.x.shape is not None
        length, *later_dims = self.x.shape[self.axis :]
        assert isinstance(length, int)
        sizes = [0] * self.axis + [length // self.size, self.size]
        sizes += [dim if isinstance(dim, int) else -1 for dim in later_dims]
        return self.b.op("Reshape", value, self.b.const_i64(sizes))

    def broadcast(self, value: ir.Value) -> ir.Value:
        """Return ``value``, a scale or a zero point, so that it broadcasts with the data."""
        if not self.rank:
            return value
        if self.size:
            return self.b.op("Unsqueeze", value, self.b.const_i64([self.axis + 1]))
        sizes = [-1] + [1] * (self.rank - self.axis - 1)
        return self.b.op("Reshape", value, self.b.const_i64(sizes))

    def restore(self, value: ir.Value, data: ir.Value) -> ir.Value:
        """Return ``value`` reshaped back to the shape of ``data``."""
        return self.b.op("Reshape", value, self.b.op("Shape", data)) if self.size else value
