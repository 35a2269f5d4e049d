"""Lowers convolution and pooling; every attribute is explicit, and ``auto_pad`` becomes pads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import numpy as np
import onnx_ir as ir

from smelt.ir.scope import is_dead
from smelt.ir.symbolic_dims.dim_texts import is_arithmetic
from smelt.program.instruction import AttributeValue, Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("Conv")
def conv(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit Conv of x [N, C, spatial...], w [M, C/group, kernel...], and optionally a bias [M].

    Attributes: ``kernel_shape``, ``strides``, ``dilations``, ``pads`` (all begins, then all ends),
    ``group``.
    """
    kernel = cx.ints(node, "kernel_shape") or _static(cx, cx.shape(cx.slot(node.inputs[1]))[2:])
    window, source = _with_numeric_pads(cx, node, window_attributes(cx, node, kernel))
    inputs = [source, *(cx.slot(value) for value in node.inputs[1:] if value is not None)]
    group = node.attributes.get_int("group", 1)
    cx.emit("Conv", inputs, (cx.define(node.outputs[0]),), **window, group=group)


def _with_numeric_pads(
    cx: ProgramBuilder, node: ir.Node, window: dict[str, AttributeValue]
) -> tuple[dict[str, AttributeValue], int]:
    """Return ``window`` with pads that are numbers, and the slot of the image.

    If pads depend on symbolic sizes, a Pad is emitted first and the pads of ``window`` become 0.
    """
    source, pads = cx.slot(node.inputs[0]), cast("tuple[Dim, ...]", window["pads"])
    if not any(isinstance(pad, ir.SymbolicDim) for pad in pads):
        return window, source
    shape, rank = cx.shape(source), len(pads) // 2
    sums = zip(shape[2:], pads[:rank], pads[rank:], strict=True)
    padded = (*shape[:2], *(size + before + after for size, before, after in sums))
    all_pads = (0, 0, *pads[:rank], 0, 0, *pads[rank:])
    value = _neutral_padding(cx, node)
    source = cx.emit_new("Pad", (source,), padded, pads=all_pads, mode="constant", value=value)
    return {**window, "pads": (0,) * len(pads)}, source


def _neutral_padding(cx: ProgramBuilder, node: ir.Node) -> float:
    """Return the padding value that does not affect the result of a window: the lowest value for a
    maximum, else 0.

    Refuses a node for which no value does: a mean that excludes padding, indices of maxima.
    """
    if node.op_type == "AveragePool" and not node.attributes.get_int("count_include_pad", 0):
        raise cx.refuse_size("auto_pad excludes padding from a mean that depends on the image size")
    if node.op_type != "MaxPool":
        return 0.0
    if any(not is_dead(value) for value in node.outputs[1:]):
        raise cx.refuse_size("the indices of maxima in an image that auto_pad enlarges")
    dtype = cx.dtype(cx.slot(node.inputs[0]))
    return -math.inf if dtype.is_floating_point() else float(np.iinfo(dtype.numpy()).min)


@lowers("ConvTranspose")
def conv_transpose(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit ConvTranspose: w is [C, M/group, kernel...], and ``pads`` crop the full result."""
    kernel = cx.ints(node, "kernel_shape") or _static(cx, cx.shape(cx.slot(node.inputs[1]))[2:])
    window = window_attributes(cx, node, kernel)
    sizes = cx.shape(cx.slot(node.inputs[0]))[2:]
    auto = node.attributes.get_string("auto_pad", "NOTSET") or "NOTSET"
    target = cx.ints(node, "output_shape")
    if target is None and auto.startswith("SAME"):
        steps = cx.ints(node, "strides") or (1,) * len(kernel)
        static = _static(cx, sizes)
        target = tuple(size * step for size, step in zip(static, steps, strict=True))
    if target is not None:
        target = target[-len(kernel) :]
        window["pads"] = _pads_to(cx, node, kernel, target, upper=auto == "SAME_UPPER")
        value = node.outputs[0]
        batch, filters = cx.shape(cx.slot(node.inputs[0]))[0], cx.shape(cx.slot(node.inputs[1]))[1]
        group = node.attributes.get_int("group", 1)
        if isinstance(filters, int):
            value.shape = ir.Shape((batch, filters * group, *target))
    cx.keep(node, **window, group=node.attributes.get_int("group", 1))


def _pads_to(
    cx: ProgramBuilder,
    node: ir.Node,
    kernel: tuple[int, ...],
    target: tuple[int, ...],
    *,
    upper: bool,
) -> tuple[int, ...]:
    """Return the pads that crop the full result of a ConvTranspose to the sizes ``target``.

    ONNX defines the total of both pads along an axis as
    ``stride * (size - 1) + output_padding + (kernel - 1) * dilation + 1 - target``. Of an odd
    total, the larger half goes to the begin unless ``upper``.

    A total of -1 means that ``target`` is one row more than the windows reach. It is split into 0
    at the begin and -1 at the end. Both pads become 0: nothing is cropped, and the kernel finds no
    window for the last row of the declared result, which is the bias alone. If ``upper``, the -1
    would be at the begin, and the node is refused.
    """
    ones = (1,) * len(kernel)
    sizes = _static(cx, cx.shape(cx.slot(node.inputs[0]))[2:])
    extra = cx.ints(node, "output_padding") or (0,) * len(kernel)
    strides, dilations = cx.ints(node, "strides") or ones, cx.ints(node, "dilations") or ones
    totals = [
        strides[i] * (sizes[i] - 1) + extra[i] + (kernel[i] - 1) * dilations[i] + 1 - target[i]
        for i in range(len(kernel))
    ]
    if min(totals) < (0 if upper else -1):
        raise cx.refuse(f"output_shape {list(target)} is more than the windows reach")
    small = tuple(max(total // 2, 0) for total in totals)
    large = tuple(total - total // 2 for total in totals)
    return (*small, *large) if upper else (*large, *small)


WINDOW = ("kernel_shape", "strides", "dilations", "pads")
"""The attributes that describe sliding windows, in the order of ``window_attributes``."""


@lowers("MaxPool", "AveragePool", "LpPool")
def pool(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a pooling with the window attributes of Conv and its own: ``ceil_mode``, and
    ``storage_order``, ``count_include_pad`` or ``p``.

    The sizes of the output slot already follow ``ceil_mode``.
    """
    kernel = cx.ints(node, "kernel_shape")
    if kernel is None:
        raise cx.refuse("kernel_shape is missing")
    attributes: dict[str, AttributeValue] = {"ceil_mode": node.attributes.get_int("ceil_mode", 0)}
    if node.op_type == "MaxPool":
        attributes["storage_order"] = node.attributes.get_int("storage_order", 0)
    elif node.op_type == "AveragePool":
        attributes["count_include_pad"] = node.attributes.get_int("count_include_pad", 0)
    else:
        attributes["p"] = node.attributes.get_int("p", 2)
    window = window_attributes(cx, node, kernel)
    window, source = _with_numeric_pads(cx, node, window)
    window = _without_idle_taps(cx, node, window)
    outputs = list(node.outputs[:1])
    outputs += [value for value in node.outputs[1:] if not is_dead(value)]
    cx.emit(
        node.op_type,
        (source,),
        [cx.define(value) for value in outputs],
        **window,
        **attributes,
    )


def _without_idle_taps(
    cx: ProgramBuilder, node: ir.Node, window: dict[str, AttributeValue]
) -> dict[str, AttributeValue]:
    """Return ``window`` with a smaller kernel, where most of the kernel reads only padding.

    Along an axis with one result, whose kernel covers the whole image, the kernel gets the size of
    the image, and pads of 0. PyTorch exporters write a mean over all pixels as a kernel of a
    thousand rows in ceil mode. An axis whose padding counts in a mean is left alone.
    """
    sizes, result_shape = cx.shape(cx.slot(node.inputs[0]))[2:], node.outputs[0].shape
    lists = {name: [*map(int, window[name])] for name in WINDOW}  # type: ignore[arg-type]
    kernel, pads, rank = lists["kernel_shape"], lists["pads"], len(sizes)
    counts_pads = bool(node.attributes.get_int("count_include_pad", 0))
    for axis, size in enumerate(sizes):
        begin, end = pads[axis], pads[axis + rank]
        if not isinstance(size, int) or result_shape is None or result_shape[axis + 2] != 1:
            continue
        if (counts_pads and (begin or end)) or lists["dilations"][axis] != 1:
            continue
        if min(begin, end) >= 0 and kernel[axis] - begin >= size > 0:
            kernel[axis], pads[axis], pads[axis + rank] = size, 0, 0
    return {name: tuple(values) for name, values in lists.items()}


def _static(cx: ProgramBuilder, shape: Sequence[Dim]) -> tuple[int, ...]:
    """Return ``shape`` as numbers; refuses the node if a size is symbolic."""
    sizes = tuple(dim for dim in shape if isinstance(dim, int))
    if len(sizes) != len(shape):
        raise cx.refuse_size("the kernel has a symbolic size")
    return sizes


def window_attributes(
    cx: ProgramBuilder, node: ir.Node, kernel: tuple[int, ...]
) -> dict[str, AttributeValue]:
    """Return the attributes ``WINDOW`` of a convolution or pooling, with defaults filled in.

    The first input of ``node`` is the image, ``kernel`` the sizes of a window. ``auto_pad`` is
    replaced by the pads that it stands for, which are expressions if the image has open sizes.
    """
    ones = (1,) * len(kernel)
    strides = cx.ints(node, "strides") or ones
    dilations = cx.ints(node, "dilations") or ones
    pads: tuple[Dim, ...] = cx.ints(node, "pads") or (0,) * (2 * len(kernel))
    auto = node.attributes.get_string("auto_pad", "NOTSET") or "NOTSET"
    sizes = cx.shape(cx.slot(node.inputs[0]))[2:]
    if not len(sizes) == len(strides) == len(dilations) == len(pads) // 2 == len(kernel):
        raise cx.refuse("kernel_shape, strides, dilations, pads and the rank do not fit")
    if min(*strides, *dilations, *kernel) < 1:
        raise cx.refuse("a kernel size, stride or dilation is below 1")
    if auto == "VALID":
        pads = (0,) * (2 * len(kernel))
    elif auto != "NOTSET":
        axes = [*zip(sizes, kernel, strides, dilations, strict=True)]
        pads = _same_pads(cx, axes, upper=auto == "SAME_UPPER")
    return dict(zip(WINDOW, (kernel, strides, dilations, pads), strict=True))


def _same_pads(
    cx: ProgramBuilder, axes: Sequence[tuple[Dim, int, int, int]], *, upper: bool
) -> tuple[Dim, ...]:
    """Return the pads of ``auto_pad``, which give ``ceil(size / stride)`` windows.

    ``axes`` has size, kernel, stride and dilation of each axis. Of an odd total, the larger half
    goes to the end if ``upper``, else to the begin.
    """
    begins: list[Dim] = []
    ends: list[Dim] = []
    total: Dim
    for size, kernel, stride, dilation in axes:
        reach = dilation * (kernel - 1) + 1
        if isinstance(size, int):
            total = max(0, (-(-size // stride) - 1) * stride + reach - size)
        elif stride == 1:
            total = reach - 1
        elif is_arithmetic(size):
            last_window_reach = size - ((size + (stride - 1)) // stride - 1) * stride
            total = ir.SymbolicDim(f"Max(0, {reach} - ({last_window_reach}))")
        else:
            raise cx.refuse_size(f"auto_pad with a stride needs a size, not {size}")
        small, large = total // 2, total - total // 2
        begins.append(small if upper else large)
        ends.append(large if upper else small)
    return (*begins, *ends)
