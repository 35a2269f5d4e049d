"""Add the attribute ``output_shape`` to ``ConvTranspose``, for targets that require it.

    before   x ─> ConvTranspose(pads = p) ─> y: N,M,8,8
    after    x ─> ConvTranspose(pads = p, output_shape = [8, 8]) ─> y: N,M,8,8

Needs    (1) static spatial sizes and equal pads at both ends: ONNX computes the pads from
         ``output_shape`` again, and the result is the same only for equal pads.
Keeps    (1) automatic pads, uneven pads, and nodes that already have the attribute.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.passes.base import EXACT, rule_pass


@rule(op("ConvTranspose", var("x"), var("weight"), rest=True), min_opset=11)
def add_output_shape(m: Match, b: Builder) -> Replacement:
    """Add ``output_shape`` if the pads that ONNX computes from it equal the given ones."""
    if "output_shape" in m.root.attributes:
        return None
    if opset.attribute(m.root, "auto_pad", m.opset) not in (None, "NOTSET"):  # keeps 1
        return Miss("auto_pad is not NOTSET")
    sizes = [_spatial(v) for v in (m["x"], m["weight"], m.root.outputs[0])]
    input_size, kernel, output_size = sizes
    if input_size is None or kernel is None or output_size is None:  # needs 1
        return Miss("a spatial size of input, weight or result is not constant")
    rank = len(output_size)
    pads = _ints_of(m, "pads", [0] * 2 * rank)
    strides, dilations = _ints_of(m, "strides", [1] * rank), _ints_of(m, "dilations", [1] * rank)
    output_padding = _ints_of(m, "output_padding", [0] * rank)
    for axis in range(rank):
        window = dilations[axis] * (kernel[axis] - 1) + 1
        total_pads = (
            strides[axis] * (input_size[axis] - 1)
            + output_padding[axis]
            + window
            - output_size[axis]
        )
        if pads[axis] != pads[axis + rank] or total_pads != 2 * pads[axis]:
            return Miss("ONNX would compute other pads from output_shape")
    output_shape = ir.AttrInt64s("output_shape", output_size)
    attributes = [*m.root.attributes.values(), output_shape]
    return b.add(ir.Node("", "ConvTranspose", m.root.inputs, attributes))[0]


def _spatial(value: ir.Value) -> list[int] | None:
    """Return the spatial sizes of N,C,... as ints; None if one is unknown or there are none."""
    dims = value.shape.dims[2:] if value.shape is not None else ()
    sizes = [dim for dim in dims if isinstance(dim, int)]
    return sizes if sizes and len(sizes) == len(dims) else None


def _ints_of(m: Match, name: str, default: list[int]) -> list[int]:
    """Return the attribute ``name`` of the root as a list, or ``default`` without it."""
    return list(opset.attribute(m.root, name, m.opset) or default)


add_conv_transpose_output_shape = rule_pass(
    "add_conv_transpose_output_shape",
    __doc__,
    [add_output_shape],
    exactness=EXACT,
    default=False,
    source="Core ML MIL: common::add_conv_transpose_output_shape",
)
