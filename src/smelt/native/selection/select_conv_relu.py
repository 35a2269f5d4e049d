"""Fuse a Conv with the Relu that is its only reader into ``smelt.c.ConvRelu``.

    before   x ─> Conv ─> Relu ─> y          after   x ─> ConvRelu ─> y

Needs    static spatial sizes if the padding is automatic.
Keeps    a Conv with another reader, or that is an output of the graph.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.native.operators import DOMAIN


@rule(op("Relu", op("Conv", var("x"), var("w"), rest=True, name="conv")))
def select_conv_relu(m: Match, b: Builder) -> Replacement:
    """Return the ConvRelu with explicit padding, or a Miss."""
    conv, image, weights = m.node("conv"), m["x"], m["w"]
    if image.shape is None or weights.shape is None:
        return Miss("the rank of the image or the weights is unknown")
    kernel = tuple(
        conv.attributes.get_ints("kernel_shape") or _static(weights.shape.dims[2:]) or ()
    )
    if not kernel:
        return Miss("the size of the kernel is unknown")
    ones = (1,) * len(kernel)
    strides = tuple(conv.attributes.get_ints("strides") or ones)
    dilations = tuple(conv.attributes.get_ints("dilations") or ones)
    pads = _pads(conv, _static(image.shape.dims[2:]), kernel, strides, dilations)
    if pads is None:
        return Miss("automatic padding of an image of unknown size")
    return b.op(
        "ConvRelu",
        *conv.inputs,
        domain=DOMAIN,
        kernel_shape=kernel,
        strides=strides,
        dilations=dilations,
        pads=pads,
        group=conv.attributes.get_int("group", 1),
    )


def _static(dims: tuple[int | ir.SymbolicDim, ...]) -> tuple[int, ...] | None:
    """Return ``dims`` as numbers, None if one is unknown."""
    sizes = tuple(dim for dim in dims if isinstance(dim, int))
    return sizes if len(sizes) == len(dims) else None


def _pads(
    conv: ir.Node,
    sizes: tuple[int, ...] | None,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> tuple[int, ...] | None:
    """Return the pads as numbers, all begins and then all ends.

    None for automatic padding of an image of unknown size.
    """
    auto = conv.attributes.get_string("auto_pad", "NOTSET")
    no_pads = (0,) * (2 * len(kernel))
    if auto in ("NOTSET", ""):
        return tuple(conv.attributes.get_ints("pads") or no_pads)
    if auto == "VALID":
        return no_pads
    if sizes is None:
        return None
    begins, ends = [], []
    for size, taps, stride, dilation in zip(sizes, kernel, strides, dilations, strict=True):
        total = max(0, (-(-size // stride) - 1) * stride + dilation * (taps - 1) + 1 - size)
        small = total // 2
        begins.append(small if auto == "SAME_UPPER" else total - small)
        ends.append(total - begins[-1])
    return (*begins, *ends)
