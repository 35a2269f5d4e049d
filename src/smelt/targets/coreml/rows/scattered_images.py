"""Rows for Col2Im and MaxUnpool, which scatter values into an image of zeros."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused


@writes("Col2Im")
def columns_to_image(c: Call) -> None:
    """Write a scatter that adds each element of each block to the pixel at its place.

    The operand is (batch, channels * block elements, blocks).
    """
    x = c.x()
    image, block = c.fixed_ints(1, "image sizes"), c.fixed_ints(2, "block sizes")
    batch, rows, columns = x.dims
    if image is None or block is None or batch is None or rows is None or columns is None:
        raise Refused("it has open sizes")
    places = _covered_places(c, image, block).reshape(-1)
    channels, total = rows // math.prod(block), math.prod(image)
    flat = c.reshape(x, (batch, channels, places.size))
    kept = np.flatnonzero(places >= 0)
    if kept.size < places.size:
        flat = take(c, flat, kept, 2)
    zeros = c.constant(np.zeros((batch, channels, total), np.float32), x.element, "zeros")
    more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
    summed = c.w.op(
        "scatter",
        x.element,
        zeros.dims,
        data=zeros,
        indices=places[kept].astype(np.int32),
        updates=flat,
        axis=2,
        mode="add",
        **more,
    )
    c.done(c.reshape(summed, (batch, channels, *image)))


def _covered_places(c: Call, image: list[int], block: list[int]) -> np.ndarray:
    """Return the flat index of the pixel of each block element, (block elements, blocks).

    It is -1 in the padding. Along one axis, element e of block b is at
    ``e * dilation + b * stride - pad``.
    """
    rank = len(image)
    dilations = c.attribute("dilations") or [1] * rank
    strides = c.attribute("strides") or [1] * rank
    pads = c.attribute("pads") or [0] * (2 * rank)
    places, outside = np.zeros((1, 1), np.int64), np.zeros((1, 1), np.bool_)
    for axis in range(rank):
        span = (block[axis] - 1) * dilations[axis] + 1
        count = (image[axis] + pads[axis] + pads[axis + rank] - span) // strides[axis] + 1
        inner = np.arange(block[axis])[:, None] * dilations[axis]
        along = inner + np.arange(count) * strides[axis] - pads[axis]
        beyond = (along < 0) | (along >= image[axis])
        sizes = places.shape[0] * block[axis], places.shape[1] * count
        places = (places[:, None, :, None] * image[axis] + along[None, :, None, :]).reshape(sizes)
        outside = (outside[:, None, :, None] | beyond[None, :, None, :]).reshape(sizes)
    return np.where(outside, -1, places)


@writes("MaxUnpool")
def max_unpool(c: Call) -> None:
    """Write a scatter of the maxima to their flat indices in the result."""
    x, dims = c.x(), c.out_dims()
    if None in dims or None in x.dims:
        raise Refused("it has open sizes")
    if list(dims[2:]) != _inferred_sizes(c, [size or 0 for size in x.dims[2:]]):
        raise Refused(
            "its output_shape is not that of its window, and ONNX does not say to which of the two "
            "its flat indices refer"
        )
    total, count = (math.prod(size or 0 for size in each) for each in (dims, x.dims))
    zeros = c.constant(np.zeros(total, np.float32), x.element, "zeros")
    more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
    filled = c.w.op(
        "scatter_along_axis",
        x.element,
        (total,),
        data=zeros,
        indices=c.reshape(c.x(1, Element.INT32), (count,)),
        updates=c.reshape(x, (count,)),
        axis=0,
        mode="update",
        **more,
    )
    c.done(c.reshape(filled, dims))


def _inferred_sizes(c: Call, sizes: list[int]) -> list[int]:
    """Return the sizes of the image whose pooling, with the node's window, gives ``sizes``."""
    rank = len(sizes)
    kernel = c.attribute("kernel_shape")
    strides = c.attribute("strides") or [1] * rank
    pads = c.attribute("pads") or [0] * (2 * rank)
    return [
        (sizes[axis] - 1) * strides[axis] - pads[axis] - pads[axis + rank] + kernel[axis]
        for axis in range(rank)
    ]
