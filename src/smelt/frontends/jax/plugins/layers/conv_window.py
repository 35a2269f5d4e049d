"""Window sizes and attributes shared by the convolution layers of several libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def result_sizes(
    image: Sequence[int],
    kernel: Sequence[int],
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
) -> list[int]:
    """Return the spatial sizes of a convolution's result: how often the window fits into each dim.

    ``image`` and ``kernel`` are spatial sizes.
    """
    dims = zip(image, kernel, strides, padding, dilation, strict=True)
    return [
        (size + sum(pads) - spacing * (taps - 1) - 1) // stride + 1
        for size, taps, stride, pads, spacing in dims
    ]


def is_window(image: Sequence[int], kernel: Sequence[int], window: dict[str, Any]) -> bool:
    """True if Conv accepts the strides, padding and dilation in ``window``, and one window fits.

    Conv needs ints and no negative padding.
    """
    if any(len(numbers) != len(kernel) for numbers in window.values()):
        return False
    pads = [pad for pair in window["padding"] for pad in pair]
    steps = [*window["strides"], *window["dilation"]]
    if not all(isinstance(number, int) for number in (*pads, *steps)):
        return False
    if any(pad < 0 for pad in pads) or any(step < 1 for step in steps):
        return False
    return all(size > 0 for size in result_sizes(image, kernel, **window))


def attributes_of(
    kernel: Sequence[int],
    strides: tuple[int, ...],
    padding: tuple[tuple[int, int], ...],
    dilation: tuple[int, ...],
    groups: int,
) -> dict[str, Any]:
    """Return the attributes of an ONNX Conv whose kernel has the spatial sizes ``kernel``."""
    return {
        "group": groups,
        "kernel_shape": [int(size) for size in kernel],
        "strides": list(strides),
        "dilations": list(dilation),
        "pads": [low for low, _ in padding] + [high for _, high in padding],
    }
