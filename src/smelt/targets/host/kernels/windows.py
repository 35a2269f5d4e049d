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
    """The geometry of sliding windows over the spatial dims, without N and C.

    ``sizes`` are those of the input, ``outputs`` the numbers of windows, ``kernel`` the numbers of
    elements (taps) of a window; ``begins`` and ``ends`` are the pads.
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
        """The spatial sizes of the padded input.

        The last window may reach beyond the pads, with ``ceil_mode``; its elements are included.
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
        """Write ``x`` [..., spatial] into ``to`` [..., padded], with ``fill`` around it; return
        ``to``.
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
        """Return all windows as one view [..., kernel..., outputs...] of ``padded``, without a
        copy: the patches of im2col.
        """
        rank = len(self.kernel)
        lead, spatial_strides = padded.shape[:-rank], padded.strides[-rank:]
        tap_strides = tuple(s * d for s, d in zip(spatial_strides, self.dilations, strict=True))
        window_strides = tuple(s * d for s, d in zip(spatial_strides, self.strides, strict=True))
        return as_strided(
            padded,
            (*lead, *self.kernel, *self.outputs),
            (*padded.strides[:-rank], *tap_strides, *window_strides),
            writeable=False,
        )

    def taps(self) -> Iterator[Index]:
        """Yield, for each tap of the kernel, the index of the elements that it reads in all
        windows.

        Applied to the padded input, the index gives [..., outputs...].
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
