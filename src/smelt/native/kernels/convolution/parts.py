"""What all ways to convolve floats share: operands of one group, and the band with its padding."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from smelt.native.kernels.convolution.window import Window, channels_of
from smelt.native.kernels.finish import finish_of, merged_strides
from smelt.native.kernels.instance import Instance
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.vector import PRELUDE, SECONDS
from smelt.native.kernels.vector_tile import Beside, Finish, plus


def constant_weights(instance: Instance) -> np.ndarray | None:
    """The weights as ``[group, filter, channel, kernel positions]``; None if they are computed."""
    array = instance.program.constants.get(instance.instruction.inputs[1])
    if array is None:
        return None
    channels, filters = channels_of(instance)
    return np.ascontiguousarray(array).reshape(instance.int("group"), filters, channels, -1)


def constant_bias(instance: Instance) -> np.ndarray | None:
    """The bias as ``[group, filter]``; None if there is none or it is computed."""
    slot = instance.instruction.inputs[2] if instance.slot(2) is not None else -1
    array = instance.program.constants.get(slot)
    return None if array is None else array.reshape(instance.int("group"), -1)


def is_float(instance: Instance) -> bool:
    """True if image and weights are of the type that vectors have."""
    return instance.type(0).name == instance.type(1).name == "float"


def strides_beside(instance: Instance, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Strides by sample, filter and pixel of an operand that is read beside the result; None if
    pixels do not follow each other."""
    result = instance.output_shape()
    return merged_strides(shape, result, ((0,), (1,), range(2, len(result))))


def finish_by_pixel(cx: KernelContext) -> Finish:
    """What becomes of the sums of group ``g`` of sample ``n``: rows are pixels, columns filters."""
    filters = cx.output_shape()[1] // cx.int("group")

    def beside(position: int) -> Beside:
        operand = cx.input(position)
        strides = strides_beside(cx, operand.shape)
        assert strides is not None  # else its step would not be here
        sample, filter_, pixel = strides
        pointer = plus(operand.name, "n", sample)
        return Beside(plus(pointer, f"g * {filters}", filter_), pixel, filter_)

    return finish_of(cx, beside)


def finish_by_filter(cx: KernelContext) -> Finish:
    """The same with filters as rows and pixels as columns."""
    finish = finish_by_pixel(cx)
    turned = (Beside(one.pointer, one.column, one.row) for one in finish.beside)
    return replace(finish, beside=tuple(turned))


@contextmanager
def groups(cx: KernelContext, window: Window) -> Iterator[None]:
    """Loops over samples ``n`` and groups ``g``; ``image`` and ``out`` are those of a group."""
    x, y, body = cx.input(0), cx.output(), cx.body
    channels, filters = channels_of(cx)
    group, size = cx.int("group"), window.input[0] * window.input[1] * window.input[2]
    with body.loops(("n", "g"), (x.shape[0], group)):
        body.line(f"const float *image = {x.name} + (n * {group} + g) * {channels * size};")
        body.line(f"float *out = {y.name} + (n * {group} + g) * {filters * window.pixels};")
        yield


def _zeros(low: int, high: int) -> str:
    return f"for (ptrdiff_t q = {low}; q < {high}; ++q)\n            to[q] = 0;"


def _copy(cx: KernelContext, low: int, high: int, step: int) -> str:
    """Columns ``low`` to ``high`` from every ``step``th pixel."""
    if step == 1:
        return f"memcpy(to + {low}, image + at + {low}, {4 * (high - low)});"
    if step == 2:
        cx.call("LANES", PRELUDE)
        cx.call("copy_seconds", SECONDS)
        return f"copy_seconds(image + at + {2 * low}, to + {low}, {high - low});"
    loop = f"for (ptrdiff_t q = {low}; q < {high}; ++q)"
    return f"{loop}\n            to[q] = image[at + q * {step}];"


def padded_rows(
    cx: KernelContext,
    window: Window,
    pitch: int,
    *,
    stride: tuple[int, int] = (1, 1),
    phase: tuple[int, int] = (0, 0),
) -> str:
    """A function ``(image, to, y, rows)`` that copies rows of a plane into rows of ``pitch``.

    Row ``r`` is row ``y + r * stride`` of the image and column ``q`` is ``q * stride`` of it, both
    from ``phase`` on and before the padding; what lies outside is 0.
    """
    _, height, width = window.input
    (down, step), first = stride, phase[1] - window.begin[2]
    low = max(0, -(first // step))
    high = max(low, min(pitch, (width - 1 - first) // step + 1))
    low = min(low, pitch)
    name = (
        f"rows_{height}x{width}_{pitch}_{down}_{step}_{first + window.begin[2]}_{window.begin[2]}"
    )
    pieces = [_zeros(0, low)] if low else []
    pieces += [_copy(cx, low, high, step)] if high > low else []
    pieces += [_zeros(high, pitch)] if high < pitch else []
    inside = "\n        ".join(pieces)
    text = f"""static void {name}(const float *restrict image, float *restrict to, ptrdiff_t y,
    ptrdiff_t rows)
{{
    for (; rows > 0; --rows, y += {down}, to += {pitch}) {{
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
