"""Lowers operators that write elements to positions given by attributes or a few numbers."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from smelt.program.lower.arrays import Steps
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.registry import lowers


@lowers("Col2Im")
def col2im(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the images [N, C, sizes...] whose blocks, as im2col reads them, are added up.

    The input is [N, C * block, L], with L blocks. Elements of the padding are dropped. A Gather
    takes the elements inside the image as rows, and a ScatterND adds each row to its pixel.
    """
    m = Steps(cx)
    x = m.array(node.inputs[0])
    image, block = cx.ints(node, "image_shape", 1), cx.ints(node, "block_shape", 2)
    if image is None or block is None:
        raise cx.refuse("image_shape or block_shape is missing")
    ones = (1,) * len(image)
    dilations, strides = cx.ints(node, "dilations") or ones, cx.ints(node, "strides") or ones
    pads = cx.ints(node, "pads") or (0,) * (2 * len(image))
    batch, (columns, count) = x.shape[0], m.sizes(x, 1)
    taps, pixels = math.prod(block), math.prod(image)
    steps = [
        (size + pads[i] + pads[len(image) + i] - dilations[i] * (block[i] - 1) - 1) // strides[i]
        + 1
        for i, size in enumerate(image)
    ]
    if columns % taps or math.prod(steps) != count or min(steps) < 1:
        raise cx.refuse("the number of blocks does not fit the columns")
    # for each tap and block: whether its pixel is in the image, and the index of that pixel
    inside, target = np.ones((taps, count), bool), np.zeros((taps, count), np.int64)
    for i, size in enumerate(image):
        offset = np.indices(block)[i].reshape(-1, 1) * dilations[i]
        index = offset + np.indices(steps)[i].reshape(1, -1) * strides[i] - pads[i]
        inside &= (index >= 0) & (index < size)
        target = target * size + index  # row-major
    rows = x.reshape(batch, columns // taps, taps * count).transpose(2, 0, 1)
    read = rows.gather(m.constant(np.flatnonzero(inside)))
    zeros = m.constant(0, x.dtype).expand(pixels, batch, columns // taps)
    indices = m.constant(target[inside].reshape(-1, 1))
    summed = m.emit("ScatterND", (zeros, indices, read), zeros.shape, reduction="add")
    m.set_output(node.outputs[0], summed.transpose(1, 2, 0).reshape(batch, columns // taps, *image))


@lowers("MaxUnpool")
def max_unpool(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit images of zeros, into which each element is written at its index.

    An index counts in the flattened result that a MaxPool with these windows would read. A larger
    ``output_shape`` adds zeros at the ends of that result.
    """
    m = Steps(cx)
    x, indices = m.array(node.inputs[0]), m.array(node.inputs[1])
    kernel = cx.ints(node, "kernel_shape")
    if kernel is None:
        raise cx.refuse("kernel_shape is missing")
    shape = m.sizes(x)
    strides = cx.ints(node, "strides") or (1,) * len(kernel)
    pads = cx.ints(node, "pads") or (0,) * (2 * len(kernel))
    sizes = [
        (size - 1) * strides[i] - pads[i] - pads[len(kernel) + i] + kernel[i]
        for i, size in enumerate(shape[2:])
    ]
    implied = (*shape[:2], *sizes)
    output_shape = cx.ints(node, "output_shape", 2) or implied
    growth = [new - size for new, size in zip(output_shape, implied, strict=True)]
    if min(implied) < 1 or min(growth) < 0:
        raise cx.refuse(f"output_shape {list(output_shape)} is less than {list(implied)}")
    zeros = m.constant(0, x.dtype).expand(math.prod(implied))
    elements = x.reshape(math.prod(shape))
    rows = indices.reshape(math.prod(shape), 1)
    placed = m.emit("ScatterND", (zeros, rows, elements), zeros.shape, reduction="none")
    result = placed.reshape(*implied)
    if output_shape != implied:
        pads = (*(0,) * len(shape), *growth)
        result = m.emit("Pad", (result,), output_shape, pads=pads, mode="constant", value=0)
    m.set_output(node.outputs[0], result)


@lowers("TensorScatter")
def tensor_scatter(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a copy of the cache with the update written along ``axis``.

    Each sample's rows begin at its number in ``write_indices``. In mode ``circular``, rows behind
    the end continue at the front.
    """
    m = Steps(cx)
    cache, update = m.array(node.inputs[0]), m.array(node.inputs[1])
    shape, count = m.sizes(cache), m.sizes(update)
    axis = cx.axis(node.attributes.get_int("axis", -2), len(shape))
    if axis == 0:
        raise cx.refuse("its axis is the first dim, which counts samples")
    start_input = cx.input(node, 2)
    start = m.array(start_input) if start_input is not None else m.constant(np.zeros(shape[0]))
    rows = start.reshape(shape[0], 1) + m.constant(np.arange(count[axis]).reshape(1, -1))
    if node.attributes.get_string("mode", "linear") == "circular":
        rows = m.op("Mod", rows, shape[axis], fmod=0)
    count_shape = [shape[0], *(1,) * (len(shape) - 1)]
    count_shape[axis] = count[axis]
    indices = rows.reshape(*count_shape).expand(*count)
    result = m.emit("ScatterElements", (cache, indices, update), shape, axis=axis, reduction="none")
    m.set_output(node.outputs[0], result)


@lowers("ReverseSequence")
def reverse_sequence(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit the input with the first ``sequence_lens[b]`` rows of each sample b reversed."""
    m = Steps(cx)
    x, lengths = m.array(node.inputs[0]), m.array(node.inputs[1])
    shape = x.shape
    batch = cx.axis(node.attributes.get_int("batch_axis", 1), len(shape))
    time = cx.axis(node.attributes.get_int("time_axis", 0), len(shape))
    if sorted((batch, time)) != [0, 1]:
        raise cx.refuse("its time and batch axes are not the first two")
    index = m.numbers(shape[time]).reshape(1, shape[time])
    counts = lengths.reshape(shape[batch], 1)
    rows = m.op("Where", m.op("Less", index, counts), counts - index - 1, index)
    rows = (rows if batch == 0 else rows.transpose(1, 0)).reshape(
        *shape[:2], *(1,) * len(shape[2:])
    )
    result = m.emit("GatherElements", (x, rows.expand(*shape)), shape, axis=time)
    m.set_output(node.outputs[0], result)


@lowers("EyeLike")
def eye_like(cx: ProgramBuilder, node: ir.Node) -> None:
    """Emit a matrix of the input's size with ones on diagonal ``k``, zeros elsewhere."""
    m = Steps(cx)
    x, output = m.array(node.inputs[0]), node.outputs[0]
    (rows, columns), diagonal = x.shape, node.attributes.get_int("k", 0)
    dtype = output.dtype or x.dtype
    if isinstance(rows, int) and isinstance(columns, int):
        m.set_output(output, m.constant(np.eye(rows, columns, diagonal), dtype))
        return
    is_on_diagonal = m.op("Equal", m.numbers(rows).reshape(rows, 1) + diagonal, m.numbers(columns))
    m.set_output(output, is_on_diagonal.cast(dtype))
