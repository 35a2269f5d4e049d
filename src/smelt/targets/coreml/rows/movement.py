"""Rows for operators that move or repeat elements."""

from __future__ import annotations

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.writer import Dims, Refused, Val


@writes("Reshape", "Flatten")
def reshape(c: Call) -> None:
    """Write reshape.

    If at most one size of the result is open, MIL infers it. Else the shape is the node's: computed
    sizes, or constants with 0 for a size to copy. MIL copies only if the rank stays the same; for
    another rank, these sizes are read from the operand.
    """
    dims = c.out_dims()
    if dims.count(None) <= 1 or c.node.op_type == "Flatten":
        c.done(c.reshape(c.moved(), dims))
        return
    x, shape = c.x(), c.ints(1)
    if shape is None:
        c.done(c.write("reshape", x=x, shape=c.x(1, Element.INT32)))
        return
    if len(shape) != x.rank or c.attribute("allowzero"):
        sizes: list[int | Val] = [
            c.size(x, axis) if size == 0 and not c.attribute("allowzero") else size
            for axis, size in enumerate(shape)
        ]
        c.done(c.write("reshape", x=x, shape=c.vector(sizes)))
        return
    c.done(c.write("reshape", x=x, shape=shape))


@writes("Transpose")
def transpose(c: Call) -> None:
    """Write transpose, by default to the reverse order of dims."""
    x = c.moved()
    perm = c.attribute("perm") or list(reversed(range(x.rank)))
    c.done(c.transpose(x, list(perm)))


@writes("Squeeze", "Unsqueeze")
def squeeze(c: Call) -> None:
    """Write squeeze or expand_dims with constant axes."""
    x = c.moved()
    axes = c.attribute("axes") if "axes" in c.node.attributes else c.fixed_ints(1, "axes")
    if c.node.op_type == "Unsqueeze":
        assert axes is not None
        c.done(c.expand(x, axes) if axes else x)
        return
    if axes is None:
        if None in x.dims:
            raise Refused("which dims it removes depends on open sizes", "name its axes")
        axes = [axis for axis, size in enumerate(x.dims) if size == 1]
    c.done(c.squeeze(x, axes) if axes else x)


@writes("Expand")
def expand(c: Call) -> None:
    """Write tile if each axis stays or grows from 1 to a known size; else a product with ones.

    The ones have the shape that the node computes, so that MIL's broadcasting expands the operand.
    """
    x, dims = c.x(), c.out_dims()
    missing = len(dims) - x.rank
    whole = c.expand(x, range(missing)) if missing > 0 else x
    pairs = list(zip(whole.dims, dims, strict=True))
    is_tiled = all(old == new or (old == 1 and new is not None) for old, new in pairs)
    if is_tiled and _keeps_open_sizes(c, x, missing):
        counts = [new if old == 1 and new is not None else 1 for old, new in pairs]
        c.done(tile(c, whole, counts, dims))
        return
    shape = c.x(1, Element.INT32)
    target = c.ints(1)
    count = shape.dims[0]
    if count is None:
        raise Refused("the number of its sizes is open")
    ones_dims: Dims = (None,) * count if target is None else tuple(target)
    kind = Element.INT32 if x.element == Element.BOOL else x.element
    one = np.asarray(1, kind.numpy)
    ones = c.w.op("fill", kind, ones_dims, shape=shape, value=one)
    product = c.w.op("mul", kind, dims, x=c.cast(x, kind), y=ones)
    c.done(c.cast(product, x.element))


def _keeps_open_sizes(c: Call, x: Val, missing: int) -> bool:
    """True if each open size of the operand is the same symbol in the result.

    The result has ``missing`` more axes in front.
    """
    operand, result = c.input(0), c.node.outputs[0]
    if operand is None or operand.shape is None or result.shape is None:
        return False
    return all(
        isinstance(size, int) or size == result.shape[axis + missing]
        for axis, size in enumerate(operand.shape)
    )


def tile(c: Call, x: Val, counts: list[int], dims: Dims) -> Val:
    """Return ``x`` repeated ``counts[axis]`` times along each axis; ``dims`` are the new dims."""
    if all(count == 1 for count in counts):
        return x
    return c.w.op("tile", x.element, dims, x=x, reps=counts)


@writes("Tile")
def repeat(c: Call) -> None:
    """Write tile by constant or computed counts."""
    x, counts = c.x(), c.ints(1)
    if counts is not None:
        c.done(tile(c, x, counts, c.out_dims()))
    else:
        c.done(c.write("tile", x=x, reps=c.x(1, Element.INT32)))


@writes("Concat", "ConcatInterleave")
def concat(c: Call) -> None:
    """Write concat; ConcatInterleave takes the elements along the axis from the operands in turn.

    A node with one operand returns the operand.
    """
    values = [c.x(index) for index in range(len(c.node.inputs))]
    if len(values) == 1:
        c.done(values[0])
        return
    axis = int(c.attribute("axis")) % values[0].rank
    interleave = c.node.op_type == "ConcatInterleave"
    c.done(c.write("concat", values=values, axis=axis, interleave=interleave))


@writes("Split")
def split(c: Call) -> None:
    """Write split into parts of constant sizes."""
    x, axis = c.x(), int(c.attribute("axis"))
    axis %= x.rank
    sizes = [c.out_dims(index)[axis] for index in range(len(c.node.outputs))]
    if len(sizes) == 1:
        c.done(x)
        return
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes):
        raise Refused("the sizes of its parts are open")
    results = [(x.element, (*x.dims[:axis], size, *x.dims[axis + 1 :])) for size in known]
    label = c.node.outputs[0].name or "split"
    c.done(*c.w.ops("split", results, name=label, x=x, split_sizes=known, axis=axis))


@writes("DepthToSpace")
def depth_to_space(c: Call) -> None:
    """Write depth_to_space for mode DCR (block, channel), pixel_shuffle for CRD."""
    block, x = int(c.attribute("blocksize")), c.x()
    if c.attribute("mode") == "CRD":
        c.done(c.write("pixel_shuffle", x=x, upscale_factor=block))
    else:
        c.done(c.write("depth_to_space", x=x, block_size=block))


@writes("SpaceToDepth")
def space_to_depth(c: Call) -> None:
    """Write space_to_depth."""
    if c.node.attributes.get_string("mode", "DCR") != "DCR":
        raise Refused("its mode is not DCR")
    c.done(c.write("space_to_depth", x=c.x(), block_size=int(c.attribute("blocksize"))))


@writes("ReverseSequence")
def reverse_sequence(c: Call) -> None:
    """Write reverse_sequence."""
    lengths = c.x(1, Element.INT32)
    seq, batch = int(c.attribute("time_axis")), int(c.attribute("batch_axis"))
    c.done(c.write("reverse_sequence", x=c.x(), lengths=lengths, seq_axis=seq, batch_axis=batch))


@writes("Trilu")
def triangle(c: Call) -> None:
    """Write a selection between x and 0 by a triangular mask.

    The mask is ``column - row >= offset``, or ``<=`` for a lower triangle. It is a constant if both
    sizes are known.
    """
    x, offset = c.x(), 0
    if c.has(1):
        diagonal = c.ints(1)
        if diagonal is None:
            raise Refused("its diagonal is computed")
        offset = diagonal[0]
    upper = bool(c.attribute("upper"))
    rows, columns = x.dims[-2:]
    if rows is not None and columns is not None:
        places = np.arange(columns)[None, :] - np.arange(rows)[:, None]
        mask = places >= offset if upper else places <= offset
        zero = np.asarray(0, x.element.numpy)
        c.done(c.select(c.w.constant(mask), x, zero, x.element))
        return
    kind, label = Element.INT32, f"{c.node.outputs[0].name}_places"
    across, down = (
        c.w.op("range_1d", kind, (size,), name=label, start=0, end=c.size(x, axis), step=1)
        for axis, size in ((-1, columns), (-2, rows))
    )
    diagonals = c.op("sub", across, c.expand(down, [1]))
    test = "greater_equal" if upper else "less_equal"
    inside = c.op(test, diagonals, offset, element=Element.BOOL)
    zero = np.asarray(0, x.element.numpy)
    c.done(c.select(inside, x, zero, x.element))
