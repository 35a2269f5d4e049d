"""Adapters for operators that changed between opsets in more than their types.

An adapter edits a node in place or replaces it. It is registered under the version at which the
operator changed and produces the form of that version; later versions have their own adapters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.scan_batches import has_lengths, scan_batches

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


def _builder(node: ir.Node, rewriter: Rewriter) -> Builder:
    return rewriter.builder(node, [node], "raise_opset")


def _take(node: ir.Node, name: str) -> ir.Attr | None:
    return node.attributes.pop(name, None)


def _append(node: ir.Node, index: int, value: ir.Value | None) -> None:
    """Set input ``index`` to ``value``, with absent inputs before it if there were fewer."""
    if value is None:
        return
    if len(node.inputs) <= index:
        node.resize_inputs(index + 1)
    node.replace_input_with(index, value)


def _ints_to_input(attribute: str) -> Adapter:
    """Return an adapter that moves an attribute of ints to input 1, int64 of rank 1."""

    def adapt(node: ir.Node, rewriter: Rewriter) -> None:
        attr = _take(node, attribute)
        if attr is not None:
            _append(node, 1, _builder(node, rewriter).const_i64(attr.as_ints()))

    return adapt


def _slice(node: ir.Node, rewriter: Rewriter) -> None:
    build = _builder(node, rewriter)
    starts, ends, axes = (_take(node, name) for name in ("starts", "ends", "axes"))
    for index, attr in enumerate((starts, ends, axes), start=1):
        if attr is not None:
            _append(node, index, build.const_i64(attr.as_ints()))


def _top_k(node: ir.Node, rewriter: Rewriter) -> None:
    attr = _take(node, "k")
    if attr is not None:
        _append(node, 1, _builder(node, rewriter).const_i64([attr.as_int()]))


def _clip(node: ir.Node, rewriter: Rewriter) -> None:
    """Move the bounds to inputs; the defaults of opset 6 are the finite float32 range."""
    build, source = _builder(node, rewriter), node.inputs[0]
    assert source is not None
    finite = np.finfo(np.float32)
    for index, (name, bound) in enumerate((("min", finite.min), ("max", finite.max)), start=1):
        attr = _take(node, name)
        number = attr.as_float() if attr is not None else float(bound)
        dtype = source.dtype if source.dtype is not None else ir.DataType.FLOAT
        with np.errstate(over="ignore"):
            _append(node, index, build.constant(np.asarray(number, dtype=dtype.numpy())))


def _pad(node: ir.Node, rewriter: Rewriter) -> None:
    build, source = _builder(node, rewriter), node.inputs[0]
    pads, number = _take(node, "pads"), _take(node, "value")
    if pads is not None:
        _append(node, 1, build.const_i64(pads.as_ints()))
    if number is not None and number.as_float() != 0:
        dtype = source.dtype if source is not None and source.dtype else ir.DataType.FLOAT
        _append(node, 2, build.constant(np.asarray(number.as_float(), dtype=dtype.numpy())))


def _dropout(node: ir.Node, rewriter: Rewriter) -> None:
    """Drop the ratio; from 7 to 11 Dropout copies its input.

    A mask that is read is all False, as in ONNX Runtime up to 11; from 12 on it is all True.
    """
    _take(node, "ratio")
    if any(not scope.is_dead(mask) for mask in node.outputs[1:]):
        build, source = _builder(node, rewriter), node.inputs[0]
        nothing = ir.Tensor(np.zeros(1, np.bool_))
        mask = build.op("ConstantOfShape", build.op("Shape", source), value=nothing)
        rewriter.replace(node, [build.op("Identity", source), mask], trust_shape=True)


def _drop_mask(node: ir.Node, rewriter: Rewriter) -> None:
    """Drop the mask, which became boolean at 10; ``breaks`` refuses one that is read."""
    node.resize_outputs(1)


def _batch_normalization(node: ir.Node, rewriter: Rewriter) -> None:
    """Expand a BatchNormalization with ``spatial=0``: its statistics have the rank of the image."""
    spatial = _take(node, "spatial")
    if spatial is None or spatial.as_int():
        return
    build = _builder(node, rewriter)
    x, scale, bias, mean, variance = node.inputs
    epsilon = node.attributes["epsilon"].as_float() if "epsilon" in node.attributes else 1e-5
    assert variance is not None
    spread = build.op("Sqrt", build.op("Add", variance, build.const_like(epsilon, variance)))
    normal = build.op("Div", build.op("Sub", x, mean), spread)
    rewriter.replace(
        node, [build.op("Add", build.op("Mul", normal, scale), bias)], trust_shape=True
    )


def _dft(node: ir.Node, rewriter: Rewriter) -> None:
    """Move the axis to an input at 20; its default changed from 1 to -2."""
    attr = _take(node, "axis")
    axis = 1 if attr is None else attr.as_int()
    _append(node, 2, _builder(node, rewriter).constant(np.asarray(axis, dtype=np.int64)))


def _split_evenly(node: ir.Node, rewriter: Rewriter) -> None:
    if len(node.inputs) < 2 or node.inputs[1] is None:
        node.attributes.add(ir.AttrInt64("num_outputs", len(node.outputs)))


def _upsample_scales(node: ir.Node, rewriter: Rewriter) -> None:
    attr = _take(node, "scales")
    if attr is not None:
        scales = np.asarray(attr.as_floats(), dtype=np.float32)
        _append(node, 1, _builder(node, rewriter).constant(scales))


def _upsample_to_resize(node: ir.Node, rewriter: Rewriter) -> None:
    """Replace Upsample by a Resize of opset 11 with asymmetric coordinates and floor rounding."""
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "nearest"
    build = _builder(node, rewriter)
    _append(node, 1, None)
    resized = _resize_11(build, node.inputs[0], node.inputs[1], mode)
    rewriter.replace(node, [resized], trust_shape=True)


def _resize(node: ir.Node, rewriter: Rewriter) -> None:
    """Split a nearest Resize of opset 10, which rounds down along growing axes and up along
    shrinking.

    From 11 on all axes round alike, so growing and shrinking axes get a Resize each.
    """
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "nearest"
    build = _builder(node, rewriter)
    x, scales = node.inputs[:2]
    assert x is not None
    assert scales is not None
    if mode != "nearest":
        resized = _resize_11(build, x, scales, mode)
    else:
        tensor = tensor_of(scales)
        factors = None if tensor is None else tensor.numpy()
        ones = build.constant(np.ones(1, np.float32))
        if factors is None or (factors > 1).any():
            grown = scales if factors is not None and (factors >= 1).all() else None
            x = _resize_11(build, x, grown or build.op("Max", scales, ones), mode)
        if factors is None or (factors < 1).any():
            shrunk = scales if factors is not None and (factors <= 1).all() else None
            x = _resize_11(build, x, shrunk or build.op("Min", scales, ones), mode, "ceil")
        resized = build.op("Identity", x) if x is node.inputs[0] else x
    rewriter.replace(node, [resized], trust_shape=True)


def _resize_without_empty(node: ir.Node, rewriter: Rewriter) -> None:
    """Drop empty operands, which before 13 stood for absent ones; ONNX's checker rejects them."""
    for index, value in list(enumerate(node.inputs))[1:3]:
        if value is not None and value.shape is not None and list(value.shape) == [0]:
            node.replace_input_with(index, None)


def _resize_11(
    build: Builder,
    x: ir.Value | None,
    scales: ir.Value | None,
    mode: str,
    nearest: str = "floor",
) -> ir.Value:
    """Build a Resize of opset 11 with asymmetric coordinates."""
    return build.op(
        "Resize",
        x,
        None,
        scales,
        mode="linear" if mode in ("linear", "bilinear") else mode,
        coordinate_transformation_mode="asymmetric",
        nearest_mode=nearest,
    )


def _scatter(node: ir.Node, rewriter: Rewriter) -> None:
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 0
    new = _builder(node, rewriter).op("ScatterElements", *node.inputs, axis=axis)
    rewriter.replace(node, [new], trust_shape=True)


def _softmax(node: ir.Node, rewriter: Rewriter) -> None:
    """Normalize the rows of the input flattened at ``axis`` (default 1), as before opset 13."""
    source = node.inputs[0]
    assert source is not None
    axis = node.attributes["axis"].as_int() if "axis" in node.attributes else 1
    if source.shape is not None and (alone := _only_long_axis(source.shape.dims, axis)) is not None:
        node.attributes.add(ir.AttrInt64("axis", alone))
        return
    build = _builder(node, rewriter)
    flat = build.op(node.op_type, build.op("Flatten", source, axis=axis), axis=-1)
    restored = build.op("Reshape", flat, build.op("Shape", source))
    rewriter.replace(node, [restored], trust_shape=True)


def _only_long_axis(dims: Sequence[int | ir.SymbolicDim], axis: int) -> int | None:
    """Return the only axis from ``axis`` on whose size may not be 1; None if there are several.

    -1 stands for the last axis, also if all sizes are 1.
    """
    rank = len(dims)
    if not -rank <= axis < rank:
        return None
    behind = range(axis % rank, rank)
    longer = [index for index in behind if dims[index] != 1]
    if len(longer) > 1:
        return None
    alone = longer[0] if longer else rank - 1
    return -1 if alone == rank - 1 else alone


def _grid_sample(node: ir.Node, rewriter: Rewriter) -> None:
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "bilinear"
    renamed = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    node.attributes.add(ir.AttrString("mode", renamed))


def _roi_align(node: ir.Node, rewriter: Rewriter) -> None:
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
    ("Upsample", 9): _upsample_scales,
    ("Upsample", 10): _upsample_to_resize,
    ("BatchNormalization", 9): _batch_normalization,
    ("Clip", 11): _clip,
    ("Pad", 11): _pad,
    ("Resize", 11): _resize,
    ("Scatter", 11): _scatter,
    ("Dropout", 12): _dropout,
    ("Squeeze", 13): _ints_to_input("axes"),
    ("Unsqueeze", 13): _ints_to_input("axes"),
    ("ReduceSum", 13): _ints_to_input("axes"),
    ("Split", 13): _ints_to_input("split"),
    ("Resize", 13): _resize_without_empty,
    ("Softmax", 13): _softmax,
    ("LogSoftmax", 13): _softmax,
    ("Hardmax", 13): _softmax,
    ("RoiAlign", 16): _roi_align,
    ("Split", 18): _split_evenly,
    **{(name, 18): _ints_to_input("axes") for name in REDUCTIONS},
    ("DFT", 20): _dft,
    ("GridSample", 20): _grid_sample,
}
