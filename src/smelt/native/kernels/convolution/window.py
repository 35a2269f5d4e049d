"""The window of a convolution or pooling."""

from __future__ import annotations

import math
from dataclasses import dataclass

from smelt.native.kernels.instance import Instance

Three = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Window:
    """A convolution or pooling over three spatial dims; missing leading dims have size 1."""

    input: Three
    output: Three
    kernel: Three
    strides: Three
    dilations: Three
    begin: Three
    end: Three

    @property
    def pixels(self) -> int:
        """The number of output positions of a channel, over all three dims."""
        return math.prod(self.output)

    @property
    def plane(self) -> int:
        """The number of image positions of a channel, over all three dims."""
        return math.prod(self.input)

    @property
    def flat(self) -> bool:
        """True if the first of the three dims has size 1 and no padding: there is one plane."""
        first = (self.input[0], self.kernel[0], self.begin[0], self.end[0])
        return first == (1, 1, 0, 0)

    @property
    def padded(self) -> bool:
        """True if the window reaches beyond the image."""
        return any((*self.begin, *self.end))

    @property
    def whole(self) -> bool:
        """True if there is one result and its window is the whole image."""
        if not all(isinstance(size, int) and size > 0 for size in self.input):
            return False
        is_one_window = self.kernel == self.input and self.output == (1, 1, 1)
        return is_one_window and self.dilations == (1, 1, 1) and not self.padded

    @property
    def pointwise(self) -> bool:
        """True if output pixel i reads only input pixel i."""
        return self.kernel == self.strides == (1, 1, 1) and not self.padded


def window_of(instance: Instance) -> Window:
    """Return the window of a Conv or pooling with explicit attributes."""
    pads = instance.ints("pads")
    rank = len(pads) // 2
    return Window(
        _three(instance.shape(0)[2:], 1),
        _three(instance.output_shape()[2:], 1),
        _three(instance.ints("kernel_shape"), 1),
        _three(instance.ints("strides"), 1),
        _three(instance.ints("dilations"), 1),
        _three(pads[:rank], 0),
        _three(pads[rank:], 0),
    )


def _three(values: tuple[int, ...], fill: int) -> Three:
    """Return ``values`` with leading ``fill``, as three numbers."""
    padded = (fill,) * (3 - len(values)) + values
    return padded[0], padded[1], padded[2]


def refuse_window(instance: Instance) -> str | None:
    """Return why the window is refused: not 1 to 3 spatial dims, or negative pads; else None."""
    if not 1 <= len(instance.ints("kernel_shape")) <= 3:
        return "a number of spatial dims that is not 1, 2 or 3"
    if min(instance.ints("pads")) < 0:
        return "a negative pad"
    return None


def channels_of(instance: Instance) -> tuple[int, int]:
    """Return the input and output channels of one group of a convolution.

    Weights [8, 1, 3, 3] of 4 groups have (1, 2).
    """
    group = instance.int("group")
    return instance.shape(1)[1], instance.shape(1)[0] // max(group, 1)
