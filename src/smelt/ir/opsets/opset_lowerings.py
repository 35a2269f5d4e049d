"""Rows of ``lower_opset.py``: how a node gets the form that its operator had one opset earlier.

A row edits a node in place or replaces it by operators of the earlier opset. It returns the reason
if it cannot, else ''. A node that stays is then compared with the earlier schema, so a row need not
check element types. Rows are registered under the version at which ONNX changed the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of
from smelt.ir.opsets.norms_without_schema import can_expand, layer_norm, rms_norm
from smelt.ir.opsets.opset_adapters import REDUCTIONS
from smelt.ir.opsets.opset_lowerings_of_quantization import (
    dequantize_21,
    dequantize_23,
    quantize_21,
)
from smelt.ir.opsets.resize_axes import inputs_of_all_axes
from smelt.ir.rewrite import Rewriter
from smelt.ir.same_shape import is_positive, same_dim

Lowering: TypeAlias = Callable[[ir.Node, Rewriter], str]
"""Edits a node to its earlier form, or replaces it; returns why not, else ''."""

LAST = int(np.iinfo(np.int64).max)


def _builder(node: ir.Node, rewriter: Rewriter) -> Builder:
    """Return a builder of nodes in place of ``node``."""
    return rewriter.builder(node, [node], "lower_opset")


def _input(node: ir.Node, index: int) -> ir.Value | None:
    """Return input ``index`` of ``node``; None if it is absent."""
    return node.inputs[index] if index < len(node.inputs) else None


def _ints(value: ir.Value | None) -> list[int] | None:
    """Return the integers of a constant, None if ``value`` is no constant."""
    tensor = None if value is None else tensor_of(value)
    return None if tensor is None else [int(item) for item in tensor.numpy().reshape(-1)]


def _rank(value: ir.Value | None) -> int | None:
    """Return the rank of ``value``; None if it is unknown."""
    return None if value is None or value.shape is None else len(value.shape)


def _axes_to_attribute(node: ir.Node, rewriter: Rewriter) -> str:
    """Move constant axes from input 1 to the attribute ``axes``."""
    keeps_all = node.attributes.get_int("noop_with_empty_axes", 0)
    node.attributes.pop("noop_with_empty_axes", None)
    axes = _input(node, 1)
    known = [] if axes is None else _ints(axes)
    if known is None or (not known and keeps_all):
        node.attributes.add(ir.AttrInt64("noop_with_empty_axes", keeps_all))
        return "its axes are not constant" if known is None else "without axes it reduces no axis"
    node.resize_inputs(1)
    if known:
        node.attributes.add(ir.AttrInt64s("axes", known))
    return ""


def _split(node: ir.Node, rewriter: Rewriter) -> str:
    """Compute the sizes of the parts where the axis may not divide evenly.

    A Split into more parts than the axis allows fails when it runs, but may stand in a branch that
    never runs, as in the body of AffineGrid. It gets a last part of 0 elements, and still fails,
    because the sizes do not add up.
    """
    count = node.attributes.get_int("num_outputs", 0)
    node.attributes.pop("num_outputs", None)
    if _input(node, 1) is not None or not count:
        return ""
    x, axis = node.inputs[0], node.attributes.get_int("axis", 0)
    assert x is not None
    size = x.shape[axis] if x.shape is not None else None
    if isinstance(size, int) and size % count == 0:
        return ""
    b = _builder(node, rewriter)
    length = b.op("Gather", b.op("Shape", x), b.const_i64([axis]))
    part_size = b.op("Div", b.op("Add", length, b.const_i64([count - 1])), b.const_i64([count]))
    last_part_size = b.op("Sub", length, b.op("Mul", part_size, b.const_i64([count - 1])))
    if isinstance(size, int) and -(-size // count) * (count - 1) > size:
        last_part_size = b.const_i64([0])
    node.resize_inputs(2)
    node.replace_input_with(1, b.op("Concat", *([part_size] * (count - 1)), last_part_size, axis=0))
    return ""


def _pad(node: ir.Node, rewriter: Rewriter) -> str:
    """Extend the pads of some axes to pads of all axes."""
    axes = _input(node, 3)
    if axes is None:
        return ""
    rank, axis_numbers = _rank(node.inputs[0]), _ints(axes)
    if rank is None or axis_numbers is None:
        return "its axes are not constant, or the rank is not known"
    b = _builder(node, rewriter)
    pad_positions = [axis % rank for axis in axis_numbers]
    pad_positions += [place + rank for place in pad_positions]
    no_pads = b.const_i64([0] * (2 * rank))
    pads = b.op("ScatterElements", no_pads, b.const_i64(pad_positions), node.inputs[1], axis=0)
    node.replace_input_with(1, pads)
    node.resize_inputs(3)
    return ""


def _resize(node: ir.Node, rewriter: Rewriter) -> str:
    """Give `roi`, `scales` or `sizes` a number for every axis, instead of those in `axes`."""
    attribute = node.attributes.get("axes")
    if attribute is None:
        return ""
    rank = _rank(node.inputs[0])
    if not rank or node.attributes.get_int("antialias", 0) != 0:
        return "it has axes together with antialias or an input of unknown rank"
    if node.attributes.get_string("keep_aspect_ratio_policy", "stretch") != "stretch":
        return "its keep_aspect_ratio_policy is not stretch"
    del node.attributes["axes"]
    extended = inputs_of_all_axes(node.inputs, attribute.as_ints(), rank, _builder(node, rewriter))
    for index, value in enumerate(extended[: len(node.inputs)]):
        node.replace_input_with(index, value)
    return ""


def _refuse_values(attribute: str, *values: str) -> Lowering:
    """Return a row that refuses ``values`` of the text attribute ``attribute``."""

    def lower(node: ir.Node, rewriter: Rewriter) -> str:
        """Return why the value of the attribute is refused, or an empty text."""
        value = node.attributes.get_string(attribute, "")
        return f"{attribute}={value} begins with a later opset" if value in values else ""

    lower.__doc__ = f"Refuse {attribute} {' and '.join(values)}."
    return lower


def _shape(node: ir.Node, rewriter: Rewriter) -> str:
    """Replace a part of a shape by a Slice of the shape."""
    start, end = (node.attributes.get_int(name, n) for name, n in (("start", 0), ("end", LAST)))
    if not {"start", "end"} & set(node.attributes):
        return ""
    b = _builder(node, rewriter)
    bounds = (b.const_i64([number]) for number in (start, end, 0))
    sliced = b.op("Slice", b.op("Shape", node.inputs[0]), *bounds)
    rewriter.replace(node, [sliced], trust_shape=True)
    return ""


def _reshape(node: ir.Node, rewriter: Rewriter) -> str:
    """Drop `allowzero`, unless a size of 0 would then copy the size of an axis that is not 0."""
    if not node.attributes.get_int("allowzero", 0):
        return ""
    x, result = node.inputs[0], node.outputs[0].shape
    sizes = _ints(_input(node, 1)) or (result and result.dims)
    dims = x.shape.dims if x is not None and x.shape is not None else ()
    if sizes is None:
        return "allowzero with sizes that may be 0"
    for axis, size in enumerate(sizes):
        copies = axis < len(dims) and same_dim(size, dims[axis])
        if not (size == -1 or is_positive(size) or copies):
            return "allowzero with sizes that may be 0"
    del node.attributes["allowzero"]
    return ""


def _relu(node: ir.Node, rewriter: Rewriter) -> str:
    """Replace Relu of integers by Max with 0."""
    x = node.inputs[0]
    if x is not None and x.dtype is not None and x.dtype.is_integer():
        b = _builder(node, rewriter)
        rewriter.replace(node, [b.op("Max", x, b.const_like(0, x))], trust_shape=True)
    return ""


def _mod(node: ir.Node, rewriter: Rewriter) -> str:
    """Refuse a remainder of floats with the sign of the divisor."""
    dtype = node.inputs[0].dtype if node.inputs[0] is not None else None
    is_integer = dtype is not None and dtype.is_integer()
    has_fmod = node.attributes.get_int("fmod", 0) != 0
    return "" if is_integer or has_fmod else "Mod of floats needs fmod=1"


def _trilu(node: ir.Node, rewriter: Rewriter) -> str:
    """Replace Trilu by Where with a comparison of row and column numbers."""
    x, k = node.inputs[0], _input(node, 1)
    if x is None or x.dtype is None:
        return "the element type is not known"
    b = _builder(node, rewriter)
    sizes = b.op("Shape", x)

    def numbers(axis: int) -> ir.Value:
        """Return the vector 0, 1, ... as long as ``axis``, -1 or -2, of ``x``."""
        size = b.op("Gather", sizes, b.const_i64(axis))
        return b.op("Range", b.const_i64(0), size, b.const_i64(1))

    rows = b.op("Unsqueeze", numbers(-2), b.const_i64([1]))
    if k is not None:
        rows = b.op("Add", rows, b.op("Reshape", k, b.const_i64([1, 1])))
    column_and_row = (numbers(-1), rows)
    is_upper = node.attributes.get_int("upper", 1)
    is_kept = b.op("GreaterOrEqual" if is_upper else "LessOrEqual", *column_and_row)
    rewriter.replace(node, [b.op("Where", is_kept, x, b.const_like(0, x))], trust_shape=True)
    return ""


def _dft(node: ir.Node, rewriter: Rewriter) -> str:
    """Move a constant axis from input 2 to the attribute ``axis``."""
    axis, rank = _input(node, 2), _rank(node.inputs[0])
    axis_numbers = [-2] if axis is None else _ints(axis)
    if axis_numbers is None:
        return "its axis is no constant"
    node.resize_inputs(min(len(node.inputs), 2))
    [axis_number] = axis_numbers
    if axis_number < 0 and rank is None:
        return "its axis is counted from the end, and the rank is not known"
    node.attributes.add(ir.AttrInt64("axis", axis_number % rank if rank else axis_number))
    return ""


def _grid_sample(node: ir.Node, rewriter: Rewriter) -> str:
    """Rename the mode to its earlier name; refuse inputs other than images."""
    if _rank(node.inputs[0]) != 4:
        return "the input is no batch of images"
    mode = node.attributes.get_string("mode", "linear")
    renamed = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    node.attributes.add(ir.AttrString("mode", renamed))
    return ""


def _recurrent(node: ir.Node, rewriter: Rewriter) -> str:
    """Add Transposes that put the batch behind the steps.

    ``layout`` 1 becomes 0. Inputs 0, 5 and 6 are the sequence and the initial states.
    """
    if not node.attributes.get_int("layout", 0):
        return ""
    del node.attributes["layout"]
    b = _builder(node, rewriter)
    operands = [
        b.op("Transpose", value, perm=[1, 0, 2]) if position in (0, 5, 6) and value else value
        for position, value in enumerate(node.inputs)
    ]
    attributes = list(node.attributes.values())
    count = len(node.outputs)
    steps, *states = b.add(ir.Node("", node.op_type, operands, attributes, num_outputs=count))
    results = [b.op("Transpose", steps, perm=[2, 0, 1, 3])]
    results += [b.op("Transpose", state, perm=[1, 0, 2]) for state in states]
    rewriter.replace(node, results, trust_shape=True)
    return ""


def _norm(build: Callable[[Builder, ir.Node], tuple[ir.Value, ...]]) -> Lowering:
    """Return a row that replaces a normalization by the nodes that ``build`` makes."""

    def lower(node: ir.Node, rewriter: Rewriter) -> str:
        """Replace the normalization by ONNX's arithmetic operators."""
        types = {value.dtype for value in node.inputs if value is not None}
        if not can_expand(node) or len(types) > 1:
            return "the rank is not known, or the element types differ or are not known"
        results = build(_builder(node, rewriter), node)
        rewriter.replace(node, results[: len(node.outputs)], trust_shape=True)
        return ""

    return lower


LOWERINGS: Mapping[tuple[str, int], Lowering] = {
    ("Mod", 28): _mod,
    ("RMSNormalization", 23): _norm(rms_norm),
    ("DequantizeLinear", 23): dequantize_23,
    ("DequantizeLinear", 21): dequantize_21,
    ("QuantizeLinear", 21): quantize_21,
    ("DFT", 20): _dft,
    ("GridSample", 20): _grid_sample,
    ("Pad", 19): _refuse_values("mode", "wrap"),
    ("Resize", 19): _refuse_values("coordinate_transformation_mode", "half_pixel_symmetric"),
    **{(name, 18): _axes_to_attribute for name in REDUCTIONS},
    ("Pad", 18): _pad,
    ("Resize", 18): _resize,
    ("Split", 18): _split,
    ("ScatterElements", 18): _refuse_values("reduction", "max", "min"),
    ("ScatterND", 18): _refuse_values("reduction", "max", "min"),
    ("LayerNormalization", 17): _norm(layer_norm),
    ("Shape", 15): _shape,
    **dict.fromkeys((("GRU", 14), ("LSTM", 14), ("RNN", 14)), _recurrent),
    ("Relu", 14): _relu,
    ("Reshape", 14): _reshape,
    ("Trilu", 14): _trilu,
}
