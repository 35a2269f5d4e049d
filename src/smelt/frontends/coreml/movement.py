"""Readers of operators that move elements: concatenation, padding, blocks, triangles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.frontends.coreml.call import END, Call
from smelt.frontends.coreml.registry import reads


@reads("concat")
def _concat(call: Call) -> ir.Value:
    """Return the values concatenated along ``axis``, or interleaved along it.

    Scalars, which Core ML accepts, become vectors first.
    """
    values = call.values("values")
    axis = call.axis("axis", max(1, call.rank(values[0])))
    if call.flag("interleave"):
        return call.op("ConcatInterleave", *values, domain="smelt", axis=axis)
    parts = [
        value if call.rank(value) else call.op("Reshape", value, call.ints([1])) for value in values
    ]
    return call.op("Concat", *parts, axis=axis)


@reads("stack")
def _stack(call: Call) -> ir.Value:
    """Return the values stacked along a new axis ``axis``."""
    values = call.values("values")
    axis = call.axis("axis", call.rank(values[0]) + 1)
    parts = [call.op("Unsqueeze", value, call.ints([axis])) for value in values]
    return call.op("Concat", *parts, axis=axis)


@reads("split")
def _split(call: Call) -> Sequence[ir.Value]:
    """Return the parts of ``x`` along ``axis``, of ``split_sizes`` or of equal size."""
    axis, count = call.integer("axis"), len(call.operation.outputs)
    if call.has("split_sizes"):
        sizes = call.integers("split_sizes")
        if len(sizes) != count:
            raise call.refused(f"it has {len(sizes)} sizes for {count} results")
        return call.builder.ops("Split", call.x, call.ints(sizes), outputs=count, axis=axis)
    if call.integer("num_splits") != count:
        raise call.refused(f"its num_splits is not its number of results, {count}")
    return call.builder.ops("Split", call.x, outputs=count, axis=axis, num_outputs=count)


@reads("transpose")
def _transpose(call: Call) -> ir.Value:
    """Return ``x`` with its dims in the order ``perm``."""
    rank = call.rank(call.x)
    return call.op("Transpose", call.x, perm=[axis % rank for axis in call.integers("perm")])


@reads("reverse")
def _reverse(call: Call) -> ir.Value:
    """Return ``x`` reversed along ``axes``, by default along all: a Slice with steps of -1."""
    axes = call.integers("axes", range(call.rank(call.x)))
    if not axes:
        return call.op("Identity", call.x)
    count = len(axes)
    starts, ends, steps = (call.ints([number] * count) for number in (-1, -END, -1))
    return call.op("Slice", call.x, starts, ends, call.ints(axes), steps)


@reads("reverse_sequence")
def _reverse_sequence(call: Call) -> ir.Value:
    """Return ``x`` with the first ``lengths[b]`` elements of each batch entry ``b`` reversed.

    ONNX has time and batch in the first two axes only, so they are moved there and back.
    """
    rank = call.rank(call.x)
    time, batch = call.axis("seq_axis", rank, 0), call.axis("batch_axis", rank, 0)
    lengths = call.i64("lengths")
    if {time, batch} == {0, 1}:
        return call.op("ReverseSequence", call.x, lengths, time_axis=time, batch_axis=batch)
    if time == batch:
        raise call.refused("seq_axis and batch_axis are the same")
    perm = [time, batch, *(axis for axis in range(rank) if axis not in (time, batch))]
    time_first = call.transposed(call.x, perm)
    result = call.op("ReverseSequence", time_first, lengths, time_axis=0, batch_axis=1)
    return call.transposed(result, [perm.index(axis) for axis in range(rank)])


@reads("band_part")
def _band_part(call: Call) -> ir.Value:
    """Return ``x`` with zeros outside of a band around the main diagonal.

    The band has ``lower`` diagonals below and ``upper`` above it; -1 keeps all.
    """
    result, lower, upper = call.x, call.integer("lower", -1), call.integer("upper", -1)
    if upper >= 0:
        result = call.op("Trilu", result, call.ints(upper), upper=0)
    if lower >= 0:
        result = call.op("Trilu", result, call.ints(-lower), upper=1)
    return call.op("Identity", result) if result is call.x else result


_MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge"}


@reads("pad")
def _pad(call: Call) -> ir.Value:
    """Return ``x`` padded. MIL lists start and end of the last axes, ONNX all starts, then ends."""
    mode, rank = call.word("mode", "constant"), call.rank(call.x)
    if mode not in _MODES:
        raise call.refused(f"its mode {mode!r} is unknown")
    constant = call.constant("pad")
    if constant is None:
        pairs = call.op("Reshape", call.i64("pad"), call.ints([-1, 2]))
        pads = call.op("Reshape", call.op("Transpose", pairs, perm=[1, 0]), call.ints([-1]))
    else:
        numbers = np.asarray(constant.value).reshape(-1, 2)
        if len(numbers) > rank:
            raise call.refused(f"it has pads for {len(numbers)} dims of {rank}")
        whole = np.zeros((rank, 2), np.int64)
        whole[rank - len(numbers) :] = numbers
        pads = call.ints([int(n) for n in whole.T.reshape(-1)])
    value = (
        call.like("constant_val", call.x)
        if mode == "constant" and call.has("constant_val")
        else None
    )
    return call.op("Pad", call.x, pads, value, mode=_MODES[mode])


@reads("depth_to_space")
def _depth_to_space(call: Call) -> ir.Value:
    """Return (N, b*b*C, H, W) as (N, C, H*b, W*b); the position in the block is the outer index."""
    return call.op("DepthToSpace", call.x, blocksize=call.integer("block_size"), mode="DCR")


@reads("pixel_shuffle")
def _pixel_shuffle(call: Call) -> ir.Value:
    """Return (N, C*b*b, H, W) as (N, C, H*b, W*b); the channel is the outer index."""
    return call.op("DepthToSpace", call.x, blocksize=call.integer("upscale_factor"), mode="CRD")


@reads("space_to_depth")
def _space_to_depth(call: Call) -> ir.Value:
    """Return (N, C, H*b, W*b) as (N, b*b*C, H, W); the position in the block is the outer index."""
    return call.op("SpaceToDepth", call.x, blocksize=call.integer("block_size"))


def _blocked(
    call: Call, x: ir.Value, factors: Sequence[int], perm: Sequence[int], merged: Sequence[int]
) -> ir.Value:
    """Return ``x``, (N, C, H, W), reshaped to (N, C, H/f0, f0, W/f1, f1), transposed, and reshaped.

    ``perm`` is the permutation of these six axes, ``merged`` the shape of the result.
    """
    n, c, h, w = call.dims(x)
    if not isinstance(h, int) or not isinstance(w, int) or not isinstance(c, int):
        raise call.refused("the sizes of its image are open")
    batch = n if isinstance(n, int) else -1
    f0, f1 = factors
    cut = call.op("Reshape", x, call.ints([batch, c, h // f0, f0, w // f1, f1]))
    return call.op("Reshape", call.op("Transpose", cut, perm=list(perm)), call.ints(merged))


@reads("pixel_unshuffle")
def _pixel_unshuffle(call: Call) -> ir.Value:
    """Return (N, C, H*f, W*f) as (N, C*f*f, H, W); the channel is the outer index."""
    f = call.integer("downscale_factor")
    sizes = call.sizes(call.x, [1, 2, 3])
    if sizes is None:
        raise call.refused("the sizes of its image are open")
    c, h, w = sizes
    return _blocked(call, call.x, (f, f), (0, 1, 3, 5, 2, 4), [-1, c * f * f, h // f, w // f])


@reads("space_to_batch")
def _space_to_batch(call: Call) -> ir.Value:
    """Return padded images (N, C, H*f0, W*f1) as (f0*f1*N, C, H, W).

    Each position in a block of pixels becomes an image; it is the outer index of the batch.
    """
    f0, f1 = call.integers("block_shape")
    (top, bottom), (left, right) = call.array("paddings").reshape(2, 2).tolist()
    pads = call.ints([0, 0, top, left, 0, 0, bottom, right])
    x = call.op("Pad", call.x, pads) if any((top, bottom, left, right)) else call.x
    sizes = call.sizes(x, [1, 2, 3])
    if sizes is None:
        raise call.refused("the sizes of its image are open")
    c, h, w = sizes
    return _blocked(call, x, (f0, f1), (3, 5, 0, 1, 2, 4), [-1, c, h // f0, w // f1])


@reads("batch_to_space")
def _batch_to_space(call: Call) -> ir.Value:
    """Return (f0*f1*N, C, H, W) as images (N, C, H*f0, W*f1), without the borders ``crops``."""
    f0, f1 = call.integers("block_shape")
    (top, bottom), (left, right) = call.array("crops").reshape(2, 2).tolist()
    sizes = call.sizes(call.x, [1, 2, 3])
    if sizes is None:
        raise call.refused("the sizes of its image are open")
    c, h, w = sizes
    split = call.op("Reshape", call.x, call.ints([f0, f1, -1, c, h, w]))
    interleaved = call.op("Transpose", split, perm=[2, 3, 4, 0, 5, 1])
    whole = call.op("Reshape", interleaved, call.ints([-1, c, h * f0, w * f1]))
    starts, ends = call.ints([top, left]), call.ints([h * f0 - bottom, w * f1 - right])
    cropped = any((top, bottom, left, right))
    return call.op("Slice", whole, starts, ends, call.ints([2, 3])) if cropped else whole


@reads("crop")
def _crop(call: Call) -> ir.Value:
    """Return ``x`` without a border of its last two dims."""
    (top, bottom), (left, right) = call.integers("crop_height"), call.integers("crop_width")
    ends = [-number if number else END for number in (bottom, right)]
    return call.op("Slice", call.x, call.ints([top, left]), call.ints(ends), call.ints([-2, -1]))


@reads("sliding_windows")
def _sliding_windows(call: Call) -> ir.Value:
    """Return the windows of ``size`` elements along ``axis``, each ``stride`` after the last.

    The axis becomes two: (window, element of the window).
    """
    axis = call.axis("axis", call.rank(call.x))
    size, stride = call.integer("size"), call.integer("stride", 1)
    length = call.dims(call.x)[axis]
    steps = np.arange(size, dtype=np.int64)
    if isinstance(length, int):
        firsts = np.arange(0, length - size + 1, stride, dtype=np.int64)
        indices = call.scope.shared.constant(firsts[:, None] + steps)
    else:
        whole = call.op("Squeeze", call.builder.size(call.x, axis), call.ints([0]))
        end = call.op("Sub", whole, call.ints(size - 1))
        starts = call.op("Range", call.ints(0), end, call.ints(stride))
        column = call.op("Unsqueeze", starts, call.ints([1]))
        indices = call.op("Add", column, call.scope.shared.constant(steps))
    return call.op("Gather", call.x, indices, axis=axis)
