"""Convolution as matrix products over sliding windows (im2col), one sample at a time."""

from __future__ import annotations

from math import prod

import numpy as np

from smelt.targets.host.kernels.kernel import Array, Call, Shaped, Step, kernel
from smelt.targets.host.kernels.windows import Windows, windows_of


@kernel("Conv", wide=True)
def conv(call: Call) -> Step:
    """Return the step of a convolution of x [N, C, spatial...] with w [M, C/group, kernel...], plus
    bias [M].
    """
    windows, group = windows_of(call), call.integer("group")
    x, w = call.input(0), call.input(1)
    channels, filters = x.shape[1], w.shape[0]
    if group < 1 or channels % group or filters % group or w.shape[1] * group != channels:
        raise call.refuse(f"{channels} channels and {filters} filters do not fit {group} groups")
    channels_per_group = channels // group
    patches_shape = (group, channels_per_group * prod(windows.kernel), prod(windows.outputs))
    scratch: list[Shaped] = []
    if windows.is_padded:
        scratch.append(((channels, *windows.padded), x.dtype))
    reads_pixels_directly = _is_direct(windows)
    if not reads_pixels_directly:
        scratch.append((patches_shape, x.dtype))
    product_shape = (group, filters // group, patches_shape[2])
    count = len(call.inputs)

    def run(*arrays: Array) -> None:
        """Multiply the filters by the patches of each image."""
        source, weights, target = arrays[0], arrays[1], arrays[count]
        matrix = weights.reshape(group, filters // group, -1)
        buffers = arrays[count + 1 :]
        for sample in range(source.shape[0]):
            image, unused_buffers = source[sample], list(buffers)
            if windows.is_padded:
                image = windows.pad(image, unused_buffers.pop(0), 0)
            if reads_pixels_directly:
                patches = image.reshape(patches_shape)
            else:
                patches = unused_buffers.pop(0)
                windows_view = windows.view(image)
                np.copyto(patches.reshape(windows_view.shape), windows_view)
            np.matmul(matrix, patches, target[sample].reshape(product_shape, copy=False))
        if call.has(2):
            target += arrays[2].reshape(-1, *(1 for _ in windows.kernel))

    return Step(run, scratch=scratch)


def _is_direct(windows: Windows) -> bool:
    """True if the windows are single pixels in order, so that the image is its im2col matrix."""
    return set(windows.kernel) | set(windows.strides) <= {1} and not windows.is_padded


@kernel("ConvTranspose", wide=True)
def conv_transpose(call: Call) -> Step:
    """Return the step of a ConvTranspose.

    Each input pixel adds its multiple of the kernel to a padded output, whose pads are then
    cropped. ``windows`` are those of the convolution that maps the output to the input.
    """
    x, w, out = call.input(0), call.input(1), call.outputs[0]
    group, pads = call.integer("group"), call.ints("pads")
    kernel_shape, strides = call.ints("kernel_shape"), call.ints("strides")
    rank, filters_per_group = len(kernel_shape), w.shape[1]
    windows = Windows(
        sizes=out.shape[2:],
        outputs=x.shape[2:],
        kernel=kernel_shape,
        strides=strides,
        dilations=call.ints("dilations"),
        begins=tuple(max(0, pad) for pad in pads[:rank]),
        ends=tuple(max(0, pad) for pad in pads[rank:]),
    )
    if any(pad < 0 for pad in pads):
        raise call.refuse("negative pads")
    count = len(call.inputs)
    padded_shape = (group * filters_per_group, *windows.padded)

    def run(*arrays: Array) -> None:
        """Multiply each pixel by its kernel, and add the products where they belong."""
        source, weights, target, total = arrays[0], arrays[1], arrays[count], arrays[count + 1]
        matrix = weights.reshape(group, -1, filters_per_group * prod(kernel_shape)).swapaxes(1, 2)
        for sample in range(source.shape[0]):
            pixels = source[sample].reshape(group, -1, prod(windows.outputs))
            parts = np.matmul(matrix, pixels)
            parts = parts.reshape(group * filters_per_group, prod(kernel_shape), *windows.outputs)
            total[...] = 0
            for position, index in enumerate(windows.taps()):
                total[index] += parts[:, position]
            target[sample] = total[windows.inside]
        if call.has(2):
            target += arrays[2].reshape(-1, *(1 for _ in kernel_shape))

    return Step(run, scratch=[(padded_shape, out.dtype)])
