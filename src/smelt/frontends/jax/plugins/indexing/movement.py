"""Lower primitives that move elements and compute no new ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand, adds_first_ones
from smelt.frontends.jax.registry import lowers


@lowers("reshape")
def reshape(
    cx: Lowering,
    x: ir.Value,
    *,
    new_sizes: Sequence[Dim],
    dimensions: Sequence[int] | None,
    sharding: object,
) -> ir.Value | Operand:
    """Reshape ``x``, after a transposition to ``dimensions`` if they are set.

    A reshape that only adds leading dims of 1 needs no node: an ``Operand`` broadcasts such dims.
    """
    if dimensions is not None:
        x = cx.transpose(x, dimensions)
    elif adds_first_ones(shape := tuple(cx.avals_in[0].shape), new_sizes):
        return Operand(x, shape)
    return cx.reshape(x, new_sizes)


@lowers("broadcast_in_dim", broadcasts=True)
def broadcast_in_dim(
    cx: Lowering,
    x: ir.Value,
    *dynamic: ir.Value,
    shape: Sequence[Dim],
    broadcast_dimensions: Sequence[int],
    sharding: object,
) -> Operand:
    """Return ``x`` with dims of 1 inserted; the Operand delays the broadcast itself."""
    operand = cx.operands[0]
    rank, missing = len(shape), len(broadcast_dimensions) - len(operand.shape)
    positions = [int(dim) for dim in broadcast_dimensions][missing:]
    if not positions:
        return Operand(x, ())
    first = positions[0]
    unbroadcast_shape: list[Dim] = [1] * rank
    for position, dim in zip(positions, operand.shape, strict=True):
        unbroadcast_shape[position] = dim
    added = [i - first for i in range(first, rank) if i not in positions]
    return Operand(cx.unsqueeze(x, added), tuple(unbroadcast_shape[first:]))


@lowers("broadcast_to", broadcasts=True)
def broadcast_to(cx: Lowering, x: ir.Value, *, shape: Sequence[Dim]) -> Operand:
    """Return the operand; ``Operand`` broadcasts where a reader needs the full shape.

    JAX broadcasts the indices of a ``Ref`` by this primitive.
    """
    return cx.operands[0]


@lowers("transpose", broadcasts=True)
def transpose(cx: Lowering, x: ir.Value, *, permutation: Sequence[int]) -> Operand:
    """Transpose ``x``; a delayed broadcast stays delayed, and its dims of 1 move, too."""
    operand = cx.operands[0]
    if not operand.shape:
        return operand
    missing = len(permutation) - len(operand.shape)
    unbroadcast_shape = [*[1] * missing, *operand.shape]
    moved = cx.transpose(cx.unsqueeze(x, range(missing)), permutation)
    return Operand(moved, tuple(unbroadcast_shape[int(dim)] for dim in permutation))


@lowers("squeeze")
def squeeze(cx: Lowering, x: ir.Value, *, dimensions: Sequence[int]) -> ir.Value:
    """Lower ``squeeze`` to Squeeze."""
    return cx.squeeze(x, [int(dim) for dim in dimensions])


@lowers("expand_dims")
def expand_dims(cx: Lowering, x: ir.Value, *, dimensions: Sequence[int]) -> ir.Value:
    """Lower ``expand_dims`` to Unsqueeze."""
    return cx.unsqueeze(x, [int(dim) for dim in dimensions])


@lowers("concatenate")
def concatenate(cx: Lowering, *parts: ir.Value, dimension: int) -> ir.Value:
    """Lower ``concatenate`` to Concat, or to a constant if all parts are constants."""
    arrays = [cx.known(part) for part in parts]
    constants = [array for array in arrays if array is not None]
    if len(constants) == len(parts):  # Such as an index, whose columns JAX joins.
        return cx.constant(np.concatenate(constants, int(dimension)))
    return parts[0] if len(parts) == 1 else cx.op("Concat", *parts, axis=int(dimension))


@lowers("stack")
def stack(cx: Lowering, *parts: ir.Value, axis: int) -> ir.Value:
    """Lower ``stack`` to Unsqueeze and Concat."""
    unsqueezed = [cx.unsqueeze(part, [int(axis)]) for part in parts]
    return unsqueezed[0] if len(unsqueezed) == 1 else cx.op("Concat", *unsqueezed, axis=int(axis))


@lowers("unstack")
def unstack(cx: Lowering, x: ir.Value, *, axis: int) -> list[ir.Value]:
    """Lower ``unstack`` to one Gather per result."""
    count = len(cx.avals_out)
    return [cx.op("Gather", x, cx.const_i64(i), axis=int(axis)) for i in range(count)]


@lowers("tile")
def tile(cx: Lowering, x: ir.Value, *, reps: Sequence[Dim]) -> ir.Value:
    """Lower ``tile`` to Tile."""
    return cx.op("Tile", x, cx.shape_value(reps))


@lowers("split")
def split(cx: Lowering, x: ir.Value, *, sizes: Sequence[Dim], axis: int) -> tuple[ir.Value, ...]:
    """Lower ``split`` to Split."""
    if len(sizes) == 1:
        return (x,)
    return cx.ops("Split", x, cx.shape_value(sizes), outputs=len(sizes), axis=int(axis))


@lowers("rev")
def rev(cx: Lowering, x: ir.Value, *, dimensions: Sequence[int]) -> ir.Value:
    """Lower ``rev`` to a Slice with step -1."""
    axes = [int(dim) for dim in dimensions]
    lowest = np.iinfo(np.int64).min  # Clamped to "through the first element".
    return cx.slice(x, [-1] * len(axes), [lowest] * len(axes), axes, [-1] * len(axes))


@lowers("slice")
def slice_(
    cx: Lowering,
    x: ir.Value,
    *,
    start_indices: Sequence[Dim],
    limit_indices: Sequence[Dim],
    strides: Sequence[int] | None,
) -> ir.Value:
    """Lower ``slice`` to a Slice of the dims that it changes."""
    shape = cx.avals_in[0].shape
    steps = [1] * len(shape) if strides is None else [int(step) for step in strides]
    bounds = zip(start_indices, limit_indices, shape, steps, strict=True)
    axes = [
        axis
        for axis, (start, end, size, step) in enumerate(bounds)
        if step != 1 or not isinstance(start, int) or start != 0 or end != size
    ]
    starts, ends = [start_indices[axis] for axis in axes], [limit_indices[axis] for axis in axes]
    return cx.slice(x, starts, ends, axes, [steps[axis] for axis in axes])
