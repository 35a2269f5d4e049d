"""What all float convolution algorithms share: operands of one group, epilogues, padded rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from smelt.native.kernels.convolution.padded_copy import copy_seconds
from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.epilogue import Epilogue, SideOperand, epilogue_of, merged_strides, plus
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext


def constant_weights(instance: Instance) -> np.ndarray | None:
    """Return the weights as ``[group, filter, channel, kernel position]``; None if they are not
    constant."""
    array = instance.program.constants.get(instance.instruction.inputs[1])
    if array is None:
        return None
    channels, filters = channels_of(instance)
    return np.ascontiguousarray(array).reshape(instance.int("group"), filters, channels, -1)


def constant_bias(instance: Instance) -> np.ndarray | None:
    """Return the bias as ``[group, filter]``; None if there is none or it is not constant."""
    slot = instance.instruction.inputs[2] if instance.slot(2) is not None else -1
    array = instance.program.constants.get(slot)
    return None if array is None else array.reshape(instance.int("group"), -1)


def is_float(instance: Instance) -> bool:
    """True if image and weights are float32."""
    return instance.type(0).name == instance.type(1).name == "float"


def side_operand_strides(instance: Instance, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the strides of a side operand by sample, filter and pixel.

    None if its pixels do not have one stride.
    """
    result = instance.output_shape()
    return merged_strides(shape, result, ((0,), (1,), range(2, len(result))))


def epilogue_by_pixel(cx: KernelContext) -> Epilogue:
    """Return the epilogue for one group: rows of side operands are pixels, columns are filters.

    Its C reads the loop variables ``n`` (the sample) and ``g`` (the group) of ``groups``.
    """
    filters = cx.output_shape()[1] // cx.int("group")

    def side_operand(position: int) -> SideOperand:
        """Return the pointer to an input for this group, and its strides by pixel and filter."""
        operand = cx.input(position)
        strides = side_operand_strides(cx, operand.shape)
        assert strides is not None  # fusion checked ``side_operand_strides``
        sample, filter_, pixel = strides
        pointer = plus(operand.name, "n", sample)
        return SideOperand(plus(pointer, f"g * {filters}", filter_), pixel, filter_)

    return epilogue_of(cx, side_operand)


def epilogue_by_filter(cx: KernelContext) -> Epilogue:
    """Return the epilogue of ``epilogue_by_pixel`` with rows and columns of its operands swapped:
    rows are filters, columns are pixels."""
    epilogue = epilogue_by_pixel(cx)
    swapped = (SideOperand(each.pointer, each.column, each.row) for each in epilogue.side_operands)
    return replace(epilogue, side_operands=tuple(swapped))


@contextmanager
def groups(cx: KernelContext, window: Window) -> Iterator[None]:
    """Write loops over samples ``n`` and groups ``g`` around the ``with`` block.

    In them, the C variables ``image`` and ``out`` point to the group in the input and the output.
    """
    source, output, body = cx.input(0), cx.output(), cx.body
    channels, filters = channels_of(cx)
    group, size = cx.int("group"), window.input[0] * window.input[1] * window.input[2]
    with body.loops(("n", "g"), (source.shape[0], group)):
        body.line(f"const float *image = {source.name} + (n * {group} + g) * {channels * size};")
        body.line(f"float *out = {output.name} + (n * {group} + g) * {filters * window.pixels};")
        yield


def _zeros(low: int, high: int) -> str:
    """Return the C loop that sets columns ``low`` to ``high`` to 0."""
    return f"for (ptrdiff_t q = {low}; q < {high}; ++q)\n            to[q] = 0;"


def _copy(cx: KernelContext, low: int, high: int, step: int) -> str:
    """Return the C that copies columns ``low`` to ``high`` from every ``step``-th pixel."""
    if step == 1:
        return f"memcpy(to + {low}, image + at + {low}, {4 * (high - low)});"
    if step == 2:
        return f"{copy_seconds(cx)}(image + at + {2 * low}, to + {low}, {high - low});"
    loop = f"for (ptrdiff_t q = {low}; q < {high}; ++q)"
    return f"{loop}\n            to[q] = image[at + q * {step}];"


def _row_text(cx: KernelContext, width: int, pitch: int, first: int, step: int) -> str:
    """Return the C of one row of ``padded_rows``: zeros, image columns, zeros.

    Column ``q`` is image column ``first + q * step``; the columns from ``low`` up to ``high`` are
    inside of the image.
    """
    low = max(0, -(first // step))
    high = max(low, min(pitch, (width - 1 - first) // step + 1))
    low = min(low, pitch)
    pieces = [_zeros(0, low)] if low else []
    pieces += [_copy(cx, low, high, step)] if high > low else []
    pieces += [_zeros(high, pitch)] if high < pitch else []
    return "\n        ".join(pieces)


def padded_rows(
    cx: KernelContext,
    window: Window,
    pitch: int,
    *,
    stride: tuple[int, int] = (1, 1),
    phase: tuple[int, int] = (0, 0),
) -> str:
    """Return the name of a function ``(image, to, y, rows)`` that copies rows into rows of
    ``pitch``.

    Row ``r`` is image row ``y + r * stride[0]``. Column ``q`` is image column ``q * stride[1]``
    plus ``phase[1]`` minus the padding. Elements outside of the image are 0.
    """
    _, height, width = window.input
    (row_step, step), first = stride, phase[1] - window.begin[2]
    name = f"rows_{height}x{width}_{pitch}_{row_step}_{step}_{phase[1]}_{window.begin[2]}"
    inside = _row_text(cx, width, pitch, first, step)
    text = f"""static void {name}(const float *restrict image, float *restrict to, ptrdiff_t y,
    ptrdiff_t rows)
{{
    for (; rows > 0; --rows, y += {row_step}, to += {pitch}) {{
        const ptrdiff_t at = y * {width} + ({first});
        if (y < 0 || y >= {height}) {{
            for (ptrdiff_t q = 0; q < {pitch}; ++q)
                to[q] = 0;
            continue;
        }}
        {inside}
        (void)at;
    }}
}}
"""
    return cx.call(name, text)
