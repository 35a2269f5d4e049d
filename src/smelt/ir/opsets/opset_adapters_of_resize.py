"""Adapters for Upsample and for Resize of opset 10: they become a Resize of opset 11."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import tensor_of
from smelt.ir.opsets.adapter_edits import builder_before, pop_attribute, set_or_append_input
from smelt.ir.rewrite import Rewriter


def upsample_scales(node: ir.Node, rewriter: Rewriter) -> None:
    """Move ``scales`` from an attribute to input 1."""
    attr = pop_attribute(node, "scales")
    if attr is not None:
        scales = np.asarray(attr.as_floats(), dtype=np.float32)
        set_or_append_input(node, 1, builder_before(node, rewriter).constant(scales))


def upsample_to_resize(node: ir.Node, rewriter: Rewriter) -> None:
    """Replace Upsample by a Resize of opset 11 with asymmetric coordinates and floor rounding."""
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "nearest"
    build = builder_before(node, rewriter)
    set_or_append_input(node, 1, value=None)
    resized = _resize_11(build, node.inputs[0], node.inputs[1], mode)
    rewriter.replace(node, [resized], trust_shape=True)


def resize(node: ir.Node, rewriter: Rewriter) -> None:
    """Replace a Resize of opset 10; a nearest one becomes up to two, one growing and one shrinking.

    Opset 10 rounds down along growing axes and up along shrinking axes; from 11 on a Resize rounds
    all axes alike.
    """
    mode = node.attributes["mode"].as_string() if "mode" in node.attributes else "nearest"
    build = builder_before(node, rewriter)
    x, scales = node.inputs[:2]
    assert x is not None
    assert scales is not None
    if mode != "nearest":
        resized = _resize_11(build, x, scales, mode)
    else:
        tensor = tensor_of(scales)
        known_scales = None if tensor is None else tensor.numpy()
        ones = build.constant(np.ones(1, np.float32))
        if known_scales is None or (known_scales > 1).any():
            growing_scales = (
                scales if known_scales is not None and (known_scales >= 1).all() else None
            )
            x = _resize_11(build, x, growing_scales or build.op("Max", scales, ones), mode)
        if known_scales is None or (known_scales < 1).any():
            shrinking_scales = (
                scales if known_scales is not None and (known_scales <= 1).all() else None
            )
            x = _resize_11(
                build, x, shrinking_scales or build.op("Min", scales, ones), mode, "ceil"
            )
        resized = build.op("Identity", x) if x is node.inputs[0] else x
    rewriter.replace(node, [resized], trust_shape=True)


def resize_without_empty(node: ir.Node, rewriter: Rewriter) -> None:
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
