"""Windows that slide over images: their number along each dim, and the elements in each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import Dim
from smelt.operators.declare import Attribute, Attributes, ints_of
from smelt.operators.onnxruntime.microsoft.declared import ints

_INTS, _STRING = ir.AttributeType.INTS, ir.AttributeType.STRING
ATTRIBUTES = (
    *(Attribute(name, _INTS) for name in ("pads", "strides")),
    Attribute("auto_pad", _STRING, "NOTSET"),
)
KERNEL = Attribute("kernel_shape", _INTS, required=True)
DILATIONS = Attribute("dilations", _INTS)
LAST = ints(channels_last=0)


@dataclass(frozen=True)
class Windows:
    """Sizes of a kernel, and how it moves along each spatial dim."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    auto_pad: str
    ceil: bool

    def padding(self, axis: int, size: int) -> tuple[int, int]:
        """Return the numbers of elements before and after a dim of ``size``.

        SAME makes as many windows as ``size / stride``, rounded up; an odd element goes after the
        dim with SAME_UPPER, before it with SAME_LOWER.
        """
        if self.auto_pad == "NOTSET":
            return self.pads[axis], self.pads[axis + len(self.kernel)]
        if self.auto_pad == "VALID":
            return 0, 0
        stride = self.strides[axis]
        total = max((-(-size // stride) - 1) * stride + self.reach(axis) - size, 0)
        smaller_half = total // 2
        return (
            (smaller_half, total - smaller_half)
            if self.auto_pad == "SAME_UPPER"
            else (total - smaller_half, smaller_half)
        )

    def reach(self, axis: int) -> int:
        """Return the number of elements from the first to the last one of a window."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def count_along(self, axis: int, size: int) -> int:
        """Return the number of windows along a dim of ``size``.

        With ``ceil``, the last window may end beyond the padding, but begins before the padding.
        """
        before, after = self.padding(axis, size)
        free, step = size + before + after - self.reach(axis), self.strides[axis]
        count = (-(-free // step) if self.ceil else free // step) + 1
        starts_in_padding = self.ceil and (count - 1) * step >= size + before
        return count - 1 if starts_in_padding else count

    def result(self, sizes: Sequence[Dim]) -> list[Dim]:
        """Return the dims of a result with one element per window.

        Raises ValueError unless there is one size for each dim of the kernel.
        """
        if len(sizes) != len(self.kernel):
            raise ValueError(
                f"{len(sizes)} spatial dims do not fit {len(self.kernel)} of the kernel"
            )
        counts = (
            (self.count_along(i, n) if isinstance(n, int) else None) for i, n in enumerate(sizes)
        )
        return [ir.SymbolicDim(None) if n is None else n for n in counts]

    def views(self, x: np.ndarray, fill: float) -> np.ndarray:
        """Return ``[N, C, windows..., kernel...]`` of an image ``[N, C, ...]`` padded with
        ``fill``."""
        rank = len(self.kernel)
        pads, window_starts = [(0, 0), (0, 0)], []
        for axis, size in enumerate(x.shape[2:]):
            before, after = self.padding(axis, size)
            end_of_last_window = (self.count_along(axis, size) - 1) * self.strides[
                axis
            ] + self.reach(axis)
            pads.append((before, max(after, end_of_last_window - size - before)))
            window_starts.append(
                slice(0, self.count_along(axis, size) * self.strides[axis], self.strides[axis])
            )
        padded = np.pad(x, pads, constant_values=fill)
        reach = tuple(self.reach(axis) for axis in range(rank))
        spatial = tuple(range(2, 2 + rank))
        windows = np.lib.stride_tricks.sliding_window_view(padded, reach, spatial)
        dilated = tuple(slice(None, None, step) for step in self.dilations)
        return windows[(slice(None), slice(None), *window_starts, *dilated)]


def windows_of(attributes: Attributes, kernel: Sequence[int]) -> Windows:
    """Return the windows of a node with the attributes of a pool or a convolution.

    Raises ValueError for strides, dilations or pads that do not fit.
    """
    rank = len(kernel)

    def per_axis(name: str, count: int, default: int) -> tuple[int, ...]:
        """Return the attribute ``name``, or ``default`` for each of ``count`` numbers."""
        return (attributes.get(name) and ints_of(attributes, name)) or (default,) * count

    auto_pad, ceil = str(attributes.get("auto_pad", "NOTSET")), bool(attributes.get("ceil_mode", 0))
    strides, dilations = per_axis("strides", rank, 1), per_axis("dilations", rank, 1)
    pads = per_axis("pads", 2 * rank, 0)
    if not len(strides) == len(dilations) == rank or len(pads) != 2 * rank:
        raise ValueError(f"strides, dilations or pads do not fit {rank} spatial dims")
    if min((*strides, *dilations), default=1) < 1:
        raise ValueError("a stride or dilation is below 1")
    return Windows(tuple(kernel), strides, dilations, pads, auto_pad, ceil)
