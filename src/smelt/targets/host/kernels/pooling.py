"""Pooling: one pass over the input for each position of the kernel."""

from __future__ import annotations

from math import prod

import numpy as np

from smelt.targets.host.kernels.kernel import Array, Call, Shaped, Step, kernel
from smelt.targets.host.kernels.windows import Windows, lowest, windows_of


def _padded_scratch(call: Call, windows: Windows) -> list[Shaped]:
    """Return the scratch array of the padded image; none without padding."""
    if not windows.is_padded:
        return []
    source = call.input(0)
    return [((*source.shape[:2], *windows.padded), source.dtype)]


@kernel("MaxPool")
def max_pool(call: Call) -> Step:
    """Return the step of a MaxPool; a window with NaN gives NaN.

    Its second output, if present, has the index of each maximum in the flattened input.
    """
    windows = windows_of(call)
    fill = lowest(call.input(0).dtype)
    if len(call.outputs) > 1:
        return _with_indices(call, windows, fill)

    def run(x: Array, out: Array, *scratch: Array) -> None:
        """Write the maximum over all taps."""
        source = windows.pad(x, scratch[0], fill) if scratch else x
        taps = windows.taps()
        np.copyto(out, source[next(taps)])
        for index in taps:
            np.maximum(out, source[index], out=out)

    return Step(run, scratch=_padded_scratch(call, windows))


def _with_indices(call: Call, windows: Windows, fill: float | int) -> Step:
    """Return the step of a MaxPool with indices: those of the first maximum in each window.

    ``places`` has, for each tap of each window, its index within one channel. Padding holds
    ``fill``, which a real element may equal; ``is_inside`` rules padding out. ``starts`` has the
    index of the first element of each channel.
    """
    shape = call.input(0).shape
    plane = np.arange(prod(windows.sizes), dtype=np.int64)
    column_major = call.integer("storage_order") == 1
    plane = plane.reshape(windows.sizes, order="F" if column_major else "C")
    numbers = np.zeros(windows.padded, dtype=np.int64)
    windows.pad(plane, numbers, 0)
    places = windows.view(numbers).reshape(-1, *windows.outputs)
    inside_image = windows.pad(
        np.ones(windows.sizes, np.bool_), np.zeros(windows.padded, np.bool_), 0
    )
    is_inside = windows.view(inside_image).reshape(-1, *windows.outputs)
    starts = np.arange(prod(shape[:2])).reshape(*shape[:2], *(1 for _ in windows.sizes))
    starts = starts * prod(windows.sizes)

    def run(x: Array, out: Array, indices: Array, *scratch: Array) -> None:
        """Write the maxima and their places."""
        source = windows.pad(x, scratch[0], fill) if scratch else x
        windows_view = windows.view(source).reshape(*shape[:2], -1, *windows.outputs)
        best = np.argmax(windows_view, axis=2, keepdims=True)
        top = np.take_along_axis(windows_view, best, 2)
        if scratch:
            ties = (windows_view == top) & is_inside
            best = np.where(ties.any(axis=2, keepdims=True), ties.argmax(2, keepdims=True), best)
        np.copyto(out, top[:, :, 0])
        chosen = np.take_along_axis(places[None, None], best, 2)[:, :, 0]
        np.copyto(indices, chosen + starts)

    return Step(run, scratch=_padded_scratch(call, windows))


@kernel("AveragePool", wide=True)
def average_pool(call: Call) -> Step:
    """Return the step of an AveragePool.

    The divisor counts padding only with ``count_include_pad``.
    """
    windows = windows_of(call)
    counts = _counts(windows, include_pad=bool(call.integer("count_include_pad")))
    counts = counts.astype(call.outputs[0].dtype)

    def run(x: Array, out: Array, *scratch: Array) -> None:
        """Write the sum over all taps divided by their count."""
        source = windows.pad(x, scratch[0], 0) if scratch else x
        out[...] = 0
        for index in windows.taps():
            np.add(out, source[index], out)
        np.divide(out, counts, out)

    return Step(run, scratch=_padded_scratch(call, windows))


def _counts(windows: Windows, *, include_pad: bool) -> Array:
    """Return the number of elements that each window averages.

    Elements that ``ceil_mode`` adds behind the padding never count.
    """
    counted = np.zeros(windows.padded)
    if include_pad:
        bounds = zip(windows.begins, windows.sizes, windows.ends, strict=True)
        counted[tuple(slice(0, begin + size + end) for begin, size, end in bounds)] = 1
    else:
        windows.pad(np.ones(windows.sizes), counted, 0)
    counts = np.zeros(windows.outputs)
    for index in windows.taps():
        counts += counted[index]
    return counts


@kernel("LpPool", wide=True)
def lp_pool(call: Call) -> Step:
    """Return the step of the p-norm of each window."""
    windows, p = windows_of(call), call.integer("p")

    def run(x: Array, out: Array, *scratch: Array) -> None:
        """Write the p-norm over all taps."""
        source = windows.pad(x, scratch[0], 0) if scratch else x
        out[...] = 0
        for index in windows.taps():
            np.add(out, np.abs(source[index]) ** p, out)
        np.power(out, 1 / p, out)

    return Step(run, scratch=_padded_scratch(call, windows))
