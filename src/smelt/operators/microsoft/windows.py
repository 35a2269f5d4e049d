"""Windows that slide over images: their places along each dim, and the elements they cover."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from smelt.ir.same_shape import Dim
from smelt.operators.declare import Attribute, Attributes, ints_of
from smelt.operators.microsoft.declared import ints

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
    auto: str
    ceil: bool

    def padding(self, axis: int, size: int) -> tuple[int, int]:
        """Return the numbers of elements before and after a dim of ``size``."""
        if self.auto == "NOTSET":
            return self.pads[axis], self.pads[axis + len(self.kernel)]
        if self.auto == "VALID":
            return 0, 0
        step = self.strides[axis]
        total = max((-(-size // step) - 1) * step + self.reach(axis) - size, 0)
        less = total // 2
        return (less, total - less) if self.auto == "SAME_UPPER" else (total - less, less)

    def reach(self, axis: int) -> int:
        """Return the number of elements from the first to the last one of a window."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def places(self, axis: int, size: int) -> int:
        """Return the number of windows along a dim; with ``ceil``, one may end beyond the
        padding."""
        before, after = self.padding(axis, size)
        free, step = size + before + after - self.reach(axis), self.strides[axis]
        count = (-(-free // step) if self.ceil else free // step) + 1
        return count - (self.ceil and (count - 1) * step >= size + before)

    def result(self, sizes: Sequence[Dim]) -> list[Dim]:
        """Return the dims of a result with one element per place."""
        known = ((self.places(i, n) if isinstance(n, int) else None) for i, n in enumerate(sizes))
        return [ir.SymbolicDim(None) if n is None else n for n in known]

    def views(self, x: np.ndarray, fill: float) -> np.ndarray:
        """Return ``[N, C, places..., kernel...]`` of an image ``[N, C, ...]``, with ``fill`` around
        it."""
        rank = len(self.kernel)
        pads, short = [(0, 0), (0, 0)], []
        for axis, size in enumerate(x.shape[2:]):
            before, after = self.padding(axis, size)
            last = (self.places(axis, size) - 1) * self.strides[axis] + self.reach(axis)
            pads.append((before, max(after, last - size - before)))
            short.append(slice(0, self.places(axis, size) * self.strides[axis], self.strides[axis]))
        wide = np.pad(x, pads, constant_values=fill)
        reach = tuple(self.reach(axis) for axis in range(rank))
        spatial = tuple(range(2, 2 + rank))
        every = np.lib.stride_tricks.sliding_window_view(wide, reach, spatial)
        inner = tuple(slice(None, None, step) for step in self.dilations)
        return every[(slice(None), slice(None), *short, *inner)]


def windows_of(attributes: Attributes, kernel: Sequence[int]) -> Windows:
    """Return the windows of a node with the attributes of a pool or a convolution."""
    rank = len(kernel)

    def said(name: str, count: int, default: int) -> tuple[int, ...]:
        return (attributes.get(name) and ints_of(attributes, name)) or (default,) * count

    auto, ceil = str(attributes.get("auto_pad", "NOTSET")), bool(attributes.get("ceil_mode", 0))
    strides, dilations = said("strides", rank, 1), said("dilations", rank, 1)
    return Windows(tuple(kernel), strides, dilations, said("pads", 2 * rank, 0), auto, ceil)
