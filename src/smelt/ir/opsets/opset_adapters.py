"""Adapters for operators that changed between opsets in more than their types.

An adapter edits a node in place or replaces it. It is registered under the version at which the
operator changed and produces the form of that version; later versions have their own adapters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import ml_dtypes
import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.opsets.adapter_edits import builder_before, pop_attribute, set_or_append_input
from smelt.ir.opsets.opset_adapters_of_resize import (
    resize,
    resize_without_empty,
    upsample_scales,
    upsample_to_resize,
)
from smelt.ir.opsets.scan_batches import has_lengths, scan_batches
from smelt.ir.rewrite import Rewriter

Adapter: TypeAlias = Callable[[ir.Node, Rewriter], None]

UNCHANGED_FOR_INFERENCE: frozenset[tuple[str, int]] = frozenset(
    {
        # Dropped attributes that never changed what inference computes.
        *(("Dropout", 7), ("BatchNormalization", 7), ("MaxPool", 8)),
    }
)
"""Versions that changed nothing for inference, although their schemas differ."""

REDUCTIONS = (
    *("ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"),
    *("ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare"),
)


def _ints_to_input(attribute: str) -> Adapter:
    """Return an adapter that moves an attribute of ints to input 1, int64 of rank 1."""

    def adapt(node: ir.Node, rewriter: Rewriter) -> None:
        """Move the attribute, if present, to input 1 of ``node``."""
        attr = pop_attribute(node, attribute)
        if attr is not None:
            set_or_append_input(node, 1, builder_before(node, rewriter).const_i64(attr.as_ints()))

    return adapt


def _slice(node: ir.Node, rewriter: Rewriter) -> None:
    """Move ``starts``, ``ends`` and ``axes`` from attributes to inputs 1 to 3."""
    build = builder_before(node, rewriter)
    starts, ends, axes = (pop_attribute(node, name) for name in ("starts", "ends", "axes"))
    for index, attr in enumerate((starts, ends, axes), start=1):
        if attr is not None:
            set_or_append_input(node, index, build.const_i64(attr.as_ints()))


def _top_k(node: ir.Node, rewriter: Rewriter) -> None:
    """Move ``k`` from an attribute to input 1."""
    attr = pop_attribute(node, "k")
    if attr is not None:
        set_or_append_input(node, 1, builder_before(node, rewriter).const_i64([attr.as_int()]))


def _clip(node: ir.Node, rewriter: Rewriter) -> None:
    """Move the bounds to inputs; the defaults of opset 6 are the finite float32 range.

    Integers, which exporters wrote before ONNX allowed them at 12, lie within the default range.
    """
    build, source = builder_before(node, rewriter), node.inputs[0]
    assert source is not None
    dtype = source.dtype if source.dtype is not None else ir.DataType.FLOAT
    finite = np.finfo(np.float32)
    for index, (name, bound) in enumerate((("min", finite.min), ("max", finite.max)), start=1):
        attr = pop_attribute(node, name)
        if attr is None and dtype.is_integer():
            continue
        number = attr.as_float() if attr is not None else float(bound)
        if dtype.is_integer():
            number = _integer_bound(number, name == "min", dtype)
        with np.errstate(over="ignore"):
            set_or_append_input(
                node, index, build.constant(np.asarray(number, dtype=dtype.numpy()))
            )


def _integer_bound(number: float, is_lowest: bool, dtype: ir.DataType) -> int:
    """Return ``number`` rounded to an integer of ``dtype``, up for a lowest bound, else down."""
    limits = ml_dtypes.iinfo(dtype.numpy())
    if abs(number) >= 2.0**63:
        return int(limits.max if number > 0 else limits.min)
    rounded = math.ceil(number) if is_lowest else math.floor(number)
    return min(max(rounded, int(limits.min)), int(limits.max))


def _pad(node: ir.Node, rewriter: Rewriter) -> None:
    """Move ``pads`` to input 1, and a ``value`` other than 0 to input 2."""
    build, source = builder_before(node, rewriter), node.inputs[0]
    pads, number = pop_attribute(node, "pads"), pop_attribute(node, "value")
    if pads is not None:
        set_or_append_input(node, 1, build.const_i64(pads.as_ints()))
    if number is not None and number.as_float() != 0:
        dtype = source.dtype if source is not None and source.dtype else ir.DataType.FLOAT
        set_or_append_input(
            node, 2, build.constant(np.asarray(number.as_float(), dtype=dtype.numpy()))
        )


def _dropout(node: ir.Node, rewriter: Rewriter) -> None:
    """Drop the ratio: up to opset 11, Dropout copies its input at inference.

    A mask that is read is all False, as in ONNX Runtime up to 11; from 12 on it is all True.
    """
    pop_attribute(node, "ratio")
    if any(not scope.is_dead(mask) for mask in node.outputs[1:]):
        build, source = builder_before(node, rewriter), node.inputs[0]
        false_tensor = ir.Tensor(np.zeros(1, np.bool_))
        mask = build.op("ConstantOfShape", build.op("Shape", source), value=false_tensor)
        rewriter.replace(node, [build.op("Identity", source), mask], trust_shape=True)


def _drop_mask(node: ir.Node, rewriter: Rewriter) -> None:
    """Drop the mask, which became boolean at 10; ``breaks`` refuses one that is read."""
    node.resize_outputs(1)


def _batch_normalization(node: ir.Node, rewriter: Rewriter) -> None:
    """Expand a BatchNormalization with ``spatial=0``: its statistics have the rank of the image."""
    spatial = pop_attribute(node, "spatial")
    if spatial is None or spatial.as_int():
        return
    build = builder_before(node, rewriter)
    x, scale, bias, mean, variance = node.inputs
    epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-5
    assert variance is not None
    deviation = build.op("Sqrt", build.op("Add", variance, build.const_like(epsilon, variance)))
    normalized = build.op("Div", build.op("Sub", x, mean), deviation)
    rewriter.replace(
        node, [build.op("Add", build.op("Mul", normalized, scale), bias)], trust_shape=True
    )


def _dft(node: ir.Node, rewriter: Rewriter) -> None:
    """Move the axis to an input at 20; its default changed from 1 to -2."""
    attr = pop_attribute(node, "axis")
    axis = 1 if attr is None else attr.as_int()
    set_or_append_input(
        node, 2, builder_before(node, rewriter).constant(np.asarray(axis, dtype=np.int64))
    )


def _split_evenly(node: ir.Node, rewriter: Rewriter) -> None:
    """Write the number of outputs as ``num_outputs``, which opset 18 requires without sizes."""
    if len(node.inputs) < 2 or node.inputs[1] is None:
        node.attributes.add(ir.AttrInt64("num_outputs", len(node.outputs)))


def _scatter(node: ir.Node, rewriter: Rewriter) -> None:
    """Replace Scatter by ScatterElements, its new name."""
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    scattered = builder_before(node, rewriter).op("ScatterElements", *node.inputs, axis=axis)
    rewriter.replace(node, [scattered], trust_shape=True)


def _softmax(node: ir.Node, rewriter: Rewriter) -> None:
    """Normalize the rows of the input flattened at ``axis`` (default 1), as before opset 13."""
    source = node.inputs[0]
    assert source is not None
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1
    if (
        source.shape is not None
        and (only_axis := _only_long_axis(source.shape.dims, axis)) is not None
    ):
        node.attributes.add(ir.AttrInt64("axis", only_axis))
        return
    build = builder_before(node, rewriter)
    normalized_rows = build.op(node.op_type, build.op("Flatten", source, axis=axis), axis=-1)
    restored = build.op("Reshape", normalized_rows, build.op("Shape", source))
    rewriter.replace(node, [restored], trust_shape=True)


def _only_long_axis(dims: Sequence[int | ir.SymbolicDim], axis: int) -> int | None:
    """Return the only axis from ``axis`` on whose size may differ from 1; None if there are
    several.

    A Softmax over that axis equals one over the rows flattened at ``axis``. The last axis is
    written as -1, and returned if all sizes are 1.
    """
    rank = len(dims)
    if not -rank <= axis < rank:
        return None
    later_axes = range(axis % rank, rank)
    longer = [index for index in later_axes if dims[index] != 1]
    if len(longer) > 1:
        return None
    only_axis = longer[0] if longer else rank - 1
    return -1 if only_axis == rank - 1 else only_axis


def _grid_sample(node: ir.Node, rewriter: Rewriter) -> None:
    """Rename the modes bilinear and bicubic to linear and cubic."""
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "bilinear"
    renamed = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    node.attributes.add(ir.AttrString("mode", renamed))


def _roi_align(node: ir.Node, rewriter: Rewriter) -> None:
    """Write the coordinate mode of earlier opsets, because the default changed at 16."""
    node.attributes.add(ir.AttrString("coordinate_transformation_mode", "output_half_pixel"))


def breaks(node: ir.Node, version: int) -> bool:
    """True if the meaning of ``node`` changed at ``version`` and no adapter restores it."""
    if (node.op_type, version) == ("BatchNormalization", 9):
        return node.attributes.get_int("spatial", 1) == 0 and len(node.outputs) > 1
    if (node.op_type, version) == ("Dropout", 10):
        return any(not scope.is_dead(mask) for mask in node.outputs[1:])
    if (node.op_type, version) == ("BatchNormalization", 14):
        return len(node.outputs) > 1  # training mode, whose statistics changed
    return (node.op_type, version) == ("Scan", 9) and has_lengths(node)


ADAPTERS: dict[tuple[str, int], Adapter] = {
    ("Dropout", 10): _drop_mask,
    ("Slice", 10): _slice,
    ("TopK", 10): _top_k,
    ("Scan", 9): scan_batches,
    ("Upsample", 9): upsample_scales,
    ("Upsample", 10): upsample_to_resize,
    ("BatchNormalization", 9): _batch_normalization,
    ("Clip", 11): _clip,
    ("Pad", 11): _pad,
    ("Resize", 11): resize,
    ("Scatter", 11): _scatter,
    ("Dropout", 12): _dropout,
    ("Squeeze", 13): _ints_to_input("axes"),
    ("Unsqueeze", 13): _ints_to_input("axes"),
    ("ReduceSum", 13): _ints_to_input("axes"),
    ("Split", 13): _ints_to_input("split"),
    ("Resize", 13): resize_without_empty,
    ("Softmax", 13): _softmax,
    ("LogSoftmax", 13): _softmax,
    ("Hardmax", 13): _softmax,
    ("RoiAlign", 16): _roi_align,
    ("Split", 18): _split_evenly,
    **{(name, 18): _ints_to_input("axes") for name in REDUCTIONS},
    ("DFT", 20): _dft,
    ("GridSample", 20): _grid_sample,
}
