"""Reads an image at computed positions, for GridSample, RoiAlign and DeformConv.

Each pixel that a position reads (tap) is one Gather from the image as rows of channels. The
weighted sum of the taps interpolates between pixels.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.program.lower.arrays import Array, Steps

NARROW = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
CUBIC = -0.75
"""The coefficient of the cubic kernel, as in PyTorch and ONNX."""


Extent: TypeAlias = "int | Array"
"""The size of an axis: a number, or a scalar that the run computes."""


@dataclass(frozen=True)
class Tap:
    """A pixel along one axis: its position (a whole float), whether it is inside, and its
    weight."""

    position: Array
    inside: Array | None
    weight: Array | None


class Sampler:
    """Reads an image [N, C, sizes...] at positions; coordinates are arrays [N, P], one per axis."""

    def __init__(self, m: Steps, image: Array, position_type: ir.DataType) -> None:
        """Transpose ``image`` to rows of channels.

        ``sizes`` are the spatial sizes: numbers, or scalars of type ``position_type``, the type of
        positions, if the run computes them. ``strides`` has, for each spatial axis, the distance in
        rows between neighboring pixels.
        """
        self.m = m
        self.batch, self.channels, *dims = image.shape
        counts = [self._count(image, axis) for axis in range(2, len(image.shape))]
        self.sizes = [
            count.cast(position_type) if isinstance(count, Array) else count for count in counts
        ]
        channels_last = image.transpose(0, *range(2, len(image.shape)), 1)
        self.strides = [self._product(counts[axis:]) for axis in range(1, len(counts) + 1)]
        self.pixels = self._product(counts)
        self.rows = channels_last.reshape(dim_product((self.batch, *dims)), self.channels)
        self.dtype = image.dtype

    def _count(self, image: Array, axis: int) -> Extent:
        """Return the size of an axis: a number, or an Array if it is symbolic."""
        size = image.shape[axis]
        if isinstance(size, int):
            return size
        shape = self.m.emit("Shape", (image,), (1,), ir.DataType.INT64, start=axis, end=axis + 1)
        return shape.reshape()

    @staticmethod
    def _product(counts: Sequence[Extent]) -> Extent:
        """Return the product of ``counts``."""
        return reduce(mul, counts) if counts else 1

    def read(self, samples: Array, taps: Sequence[Tap]) -> Array:
        """Return the pixels [N, P, C] at one tap per axis, of the images numbered ``samples`` [N,
        1].

        Pixels outside are 0.
        """
        m, index = self.m, samples * self.pixels
        inside: Array | None = None
        for tap, size, stride in zip(taps, self.sizes, self.strides, strict=True):
            position = m.op("Min", m.op("Max", tap.position, 0), size - 1).cast(ir.DataType.INT64)
            index = index + position * stride
            if tap.inside is not None:
                inside = tap.inside if inside is None else m.op("And", inside, tap.inside)
        values = self.rows.gather(index)
        if inside is not None:
            values = m.op("Where", inside.reshape(*inside.shape, 1), values, 0)
        return values

    def weighted(self, samples: Array, taps: Sequence[Tap]) -> Array:
        """Return what ``read`` returns, times the weights of the taps."""
        values = self.read(samples, taps)
        weight: Array | None = None
        for tap in taps:
            if tap.weight is not None:
                weight = tap.weight if weight is None else weight * tap.weight
        if weight is None:
            return values
        return values * weight.cast(self.dtype).reshape(*weight.shape, 1)

    def total(self, samples: Array, axes: Sequence[Sequence[Tap]]) -> Array:
        """Return the weighted sum over all combinations of the taps of each axis: in two dims,
        with two taps each, over four pixels.
        """
        total: Array | None = None
        for taps in itertools.product(*axes):
            value = self.weighted(samples, taps)
            total = value if total is None else total + value
        assert total is not None
        return total


def around(m: Steps, x: Array, mode: str) -> list[tuple[Array, Array | None]]:
    """Return the whole positions around ``x``, each with its weight, for the interpolation
    ``mode``.

    The weight is None for ``nearest``, which reads one position.
    """
    if mode == "nearest":
        return [(x, None)]
    floor = m.op("Floor", x)
    fraction = x - floor
    if mode == "linear":
        return [(floor, 1 - fraction), (floor + 1, fraction)]
    a = CUBIC
    far_below, below = fraction + 1, fraction
    above, far_above = 1 - fraction, 2 - fraction

    def outer(distance: Array) -> Array:
        """Return the weight of a pixel 1 to 2 pixels away: ``a t^3 - 5 a t^2 + 8 a t - 4 a``
        (Keys, 1981).
        """
        return ((distance * a - 5 * a) * distance + 8 * a) * distance - 4 * a

    def inner(distance: Array) -> Array:
        """Return the weight of a pixel up to 1 pixel away: ``(a + 2) t^3 - (a + 3) t^2 + 1``."""
        return (distance * (a + 2) - (a + 3)) * distance * distance + 1

    weights = (outer(far_below), inner(below), inner(above), outer(far_above))
    return [(floor + (i - 1.0), weight) for i, weight in enumerate(weights)]


def within(m: Steps, coordinate: Array, size: Extent) -> Array:
    """Return an array that is true where ``coordinate`` lies in [0, size - 1]."""
    below = m.op("LessOrEqual", coordinate, size - 1)
    return m.op("And", m.op("GreaterOrEqual", coordinate, 0), below)
