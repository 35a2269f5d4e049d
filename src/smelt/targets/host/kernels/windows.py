"""Sliding windows over the spatial dims of [N, C, spatial...], for convolution and pooling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from types import EllipsisType
from typing import TypeAlias

import numpy as np
from numpy.lib.stride_tricks import as_strided

from smelt.targets.host.kernels.kernel import Array, Call

Index: TypeAlias = "tuple[slice | EllipsisType, ...]"


@dataclass(frozen=True)
class Windows:
    """The geometry of sliding windows, in sizes without N and C.

    ``padded`` covers every window, including those that ``ceil_mode`` extends over the end.
    """

    sizes: tuple[int, ...]
    outputs: tuple[int, ...]
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]

    @property
    def padded(self) -> tuple[int, ...]:
        """The spatial sizes of the padded input: with pads, and as far as the last window
        reaches.
        """
        return tuple(
            max(begin + size + max(end, 0), (out - 1) * stride + dilation * (kernel - 1) + 1)
            for begin, size, end, out, stride, dilation, kernel in zip(
                self.begins,
                self.sizes,
                self.ends,
                self.outputs,
                self.strides,
                self.dilations,
                self.kernel,
                strict=True,
            )
        )

    @property
    def is_padded(self) -> bool:
        """True if windows reach outside the input."""
        return self.padded != self.sizes

    def pad(self, x: Array, to: Array, fill: float | int) -> Array:
        """Fill ``to`` [..., padded] with ``fill``, copy ``x`` [..., spatial] into it, and return
        it.
        """
        to[...] = fill
        to[self.inside] = x
        return to

    @property
    def inside(self) -> Index:
        """The index of the input within the padded input."""
        pairs = zip(self.begins, self.sizes, strict=True)
        return (..., *(slice(begin, begin + size) for begin, size in pairs))

    def view(self, padded: Array) -> Array:
        """Return every window as a view [..., kernel..., outputs...]."""
        rank = len(self.kernel)
        lead, steps = padded.shape[:-rank], padded.strides[-rank:]
        taps = tuple(s * d for s, d in zip(steps, self.dilations, strict=True))
        moves = tuple(s * d for s, d in zip(steps, self.strides, strict=True))
        return as_strided(
            padded,
            (*lead, *self.kernel, *self.outputs),
            (*padded.strides[:-rank], *taps, *moves),
            writeable=False,
        )

    def taps(self) -> Iterator[Index]:
        """Yield for each kernel position the index of the elements that it reads: [...,
        outputs...].
        """
        for position in product(*(range(size) for size in self.kernel)):
            index: list[slice | EllipsisType] = [...]
            for tap, output_size, stride, dilation in zip(
                position, self.outputs, self.strides, self.dilations, strict=True
            ):
                start = tap * dilation
                index.append(slice(start, start + (output_size - 1) * stride + 1, stride))
            yield tuple(index)


def windows_of(call: Call) -> Windows:
    """Return the windows of a convolution or pooling; raises Unsupported E202 for negative pads."""
    kernel, pads = call.ints("kernel_shape"), call.ints("pads")
    if any(pad < 0 for pad in pads):
        raise call.refuse("negative pads")
    rank = len(kernel)
    return Windows(
        sizes=call.input(0).shape[2:],
        outputs=call.outputs[0].shape[2:],
        kernel=kernel,
        strides=call.ints("strides"),
        dilations=call.ints("dilations"),
        begins=pads[:rank],
        ends=pads[rank:],
    )


def lowest(dtype: np.dtype) -> float | int:
    """Return -inf, or the least integer: the identity of the maximum."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf
