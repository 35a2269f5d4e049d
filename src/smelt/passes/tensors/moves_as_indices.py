"""Describe nodes that only move or drop rows of a tensor by one array of indices.

A move reorders the dims between the first ``prefix`` and the last ``suffix`` dims of a tensor. It
does the same for every index of the prefix dims; the elements of the suffix dims are one row. A
chain of moves is an array of the row indices that its result reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.opset import RESHAPES
from smelt.ir.rows import rows_taken
from smelt.ir.same_shape import Dim, same_dim
from smelt.ir.slices import cuts_of
from smelt.ir.walk import producer_of
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.tensors.stack import concat_axis

Places = np.ndarray
"""For each row of a result, the number of the source's row that it reads.

The dims are those between prefix and suffix.
"""


@dataclass(frozen=True)
class Move:
    """``nodes`` that compute ``result`` from ``source`` alone; the last node returns it.

    ``apply(places, prefix)`` returns the places after the move for those before it. The chain's
    ``prefix`` may be shorter than the move's own. ``copies`` is False if elements keep their order
    in memory.
    """

    nodes: tuple[ir.Node, ...]
    source: ir.Value
    result: ir.Value
    prefix: int
    suffix: int
    apply: Callable[[Places, int], Places]
    copies: bool = True


@dataclass(frozen=True)
class Chain:
    """``moves`` in a row: the result reads ``places`` among the ``rows`` of the first source."""

    moves: tuple[Move, ...]
    prefix: int
    suffix: int
    places: Places
    rows: int
    row_bytes: int


def move_to(result: ir.Value | None, constants: Constants) -> Move | None:
    """Return the move that computes ``result``; None if another operator does."""
    node = result.producer() if result is not None else None
    if node is None or node.domain or result is None or not is_known(node):
        return None
    read = _READERS.get(node.op_type)
    source = node.inputs[0] if node.inputs else None
    if read is None or source is None or source.shape is None or result.shape is None:
        return None
    return read(node, source, result, constants)


def chain_of(moves: Sequence[Move], most_rows: int) -> Chain | None:
    """Return ``moves``, each of which reads the result of the one before, as one Chain.

    None if sizes in between are unknown or there are more than ``most_rows`` places.
    """
    first = moves[0].source
    shapes = [first.shape, *(move.result.shape for move in moves)]
    lowest_rank = min(len(shape) for shape in shapes if shape is not None)
    prefix = min(move.prefix for move in moves)
    suffix = min(lowest_rank - prefix, *(move.suffix for move in moves))
    middles = [_dims_between(shape, prefix, suffix) for shape in shapes]
    suffix_dims = first.shape.dims[len(first.shape) - suffix :] if first.shape is not None else ()
    if middles[0] is None or None in middles:
        return None
    if not 0 < prod(middles[0]) <= most_rows:
        return None
    places = np.arange(prod(middles[0]), dtype=np.int32).reshape(middles[0])
    for move, middle in zip(moves, middles[1:], strict=True):
        places = move.apply(places, prefix)
        if middle is not None:
            places = places.reshape(middle)
    if not 0 < places.size <= most_rows:
        return None
    size = row_bytes(suffix_dims, first.dtype)
    return Chain(tuple(moves), prefix, suffix, places, prod(middles[0]), size)


def row_bytes(dims: Sequence[Dim], dtype: ir.DataType | None) -> int:
    """Return the bytes of a tensor of ``dims``; 0 if unknown, as for strings."""
    numbers = [dim for dim in dims if isinstance(dim, int)]
    if dtype in (None, ir.DataType.STRING) or len(numbers) < len(dims):
        return 0
    return int(prod(numbers) * dtype.itemsize)


def _dims_between(shape: ir.Shape | None, prefix: int, suffix: int) -> list[int] | None:
    """Return the dims of ``shape`` between prefix and suffix if all are numbers, else None."""
    dims = shape.dims[prefix : len(shape) - suffix] if shape is not None else (None,)
    numbers = [dim for dim in dims if isinstance(dim, int)]
    return numbers if len(numbers) == len(dims) else None


def _reshape(node: ir.Node, source: ir.Value, result: ir.Value, constants: Constants) -> Move:
    """Return the move of a Reshape: the dims that stay equal at both ends are prefix and suffix."""
    before, after = source.shape or ir.Shape([]), result.shape or ir.Shape([])
    prefix = _common_dims(before.dims, after.dims)
    suffix = _common_dims(before.dims[prefix:][::-1], after.dims[prefix:][::-1])
    return Move((node,), source, result, prefix, suffix, lambda places, _: places, copies=False)


def _common_dims(before: Sequence[Dim], after: Sequence[Dim]) -> int:
    """Return how many leading dims of both are proved equal."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if not same_dim(one, other):
            break
        count += 1
    return count


def _transpose(
    node: ir.Node, source: ir.Value, result: ir.Value, constants: Constants
) -> Move | None:
    """Return the move of a Transpose; None for an unknown permutation.

    Its prefix and suffix are the axes that stay in place.
    """
    perm = permutation(node)
    if perm is None:
        return None
    moved = [axis for axis, old in enumerate(perm) if axis != old]
    prefix, end = (moved[0], moved[-1] + 1) if moved else (len(perm), len(perm))

    def apply(places: Places, skipped: int) -> Places:
        """Return ``places`` permuted; its axes begin after the first ``skipped`` of the source."""
        return places.transpose([perm[skipped + i] - skipped for i in range(places.ndim)])

    return Move((node,), source, result, prefix, len(perm) - end, apply)


def _slice(node: ir.Node, source: ir.Value, result: ir.Value, constants: Constants) -> Move | None:
    """Return the move of a Slice with constant cuts, else None."""
    cuts = cuts_of(node, constants)
    rows = {axis: _rows_of_slice(source, axis, cut) for axis, cut in (cuts or {}).items()}
    if not rows or source.shape is None:
        return None

    def apply(places: Places, skipped: int) -> Places:
        """Return the ``places`` that the Slice takes."""
        for axis, indices in rows.items():
            places = places.take(indices or [], axis - skipped)
        return places

    if None in rows.values():
        return None
    return Move((node,), source, result, min(rows), len(source.shape) - 1 - max(rows), apply)


def _gather(node: ir.Node, source: ir.Value, result: ir.Value, constants: Constants) -> Move | None:
    """Return the move of a Gather with a constant vector of valid indices, else None."""
    axis = node.attributes.get_int("axis", 0)
    indices = constants.get(node.inputs[1], None)
    if indices is None or indices.ndim != 1 or source.shape is None:
        return None
    axis %= len(source.shape)
    size = source.shape[axis]
    if not isinstance(size, int) or not ((-size <= indices) & (indices < size)).all():
        return None
    return _move_along(axis, indices, (node,), source, result)


def _rotation(
    node: ir.Node, source: ir.Value, result: ir.Value, constants: Constants
) -> Move | None:
    """Return the move of a Concat of pieces of one value, as ``jnp.roll`` writes it.

    A piece is a Slice or a part of a Split. None for any other Concat.
    """
    axis = concat_axis(node)
    rotated: ir.Value | None = None
    indices: list[int] = []
    nodes = []
    for piece in node.inputs:
        producer = producer_of(piece, "Slice", "Split")
        value = producer.inputs[0] if producer is not None else None
        rows = _rows_of_piece(producer, piece, axis, constants)
        if producer is None or value is None or rows is None or rotated not in (None, value):
            return None
        rotated = value
        indices += rows
        nodes.append(producer)
    if axis is None or rotated is None or rotated.shape is None:
        return None
    return _move_along(axis, np.asarray(indices), (*dict.fromkeys(nodes), node), rotated, result)


def _move_along(
    axis: int, indices: Places, nodes: tuple[ir.Node, ...], source: ir.Value, result: ir.Value
) -> Move:
    """Return the move that takes ``indices`` along ``axis`` of ``source``."""
    rank = len(source.shape or ())
    return Move(
        nodes,
        source,
        result,
        axis,
        rank - 1 - axis,
        lambda p, skipped: p.take(indices, axis - skipped),
    )


def _rows_of_piece(
    producer: ir.Node | None, piece: ir.Value | None, axis: int | None, constants: Constants
) -> Sequence[int] | None:
    """Return the rows along ``axis`` of which ``producer``, a Slice or Split, makes ``piece``.

    None if it cuts other axes too, or if a size is unknown.
    """
    source = producer.inputs[0] if producer is not None else None
    if source is None or axis is None or producer is None or piece is None:
        return None
    if producer.op_type == "Slice":
        cuts = cuts_of(producer, constants)
        return (
            _rows_of_slice(source, axis, cuts[axis])
            if cuts is not None and set(cuts) == {axis}
            else None
        )
    rank = len(source.shape) if source.shape is not None else 0
    if not rank or producer.attributes.get_int("axis", 0) % rank != axis:
        return None
    parts_up_to_piece = producer.outputs[: producer.outputs.index(piece) + 1]
    sizes = [part.shape[axis] if part.shape is not None else None for part in parts_up_to_piece]
    known_sizes = [size for size in sizes if isinstance(size, int)]
    if len(known_sizes) < len(parts_up_to_piece):
        return None
    return range(sum(known_sizes[:-1]), sum(known_sizes))


def _rows_of_slice(source: ir.Value, axis: int, cut: tuple[int, int, int]) -> Sequence[int] | None:
    """Return the rows that ``cut`` takes along ``axis`` of ``source``.

    None if the size of the axis is unknown.
    """
    size = source.shape[axis] if source.shape is not None else None
    return rows_taken(size, cut) if isinstance(size, int) else None


_READERS: dict[str, Callable[[ir.Node, ir.Value, ir.Value, Constants], Move | None]] = {
    **dict.fromkeys(RESHAPES, _reshape),
    "Transpose": _transpose,
    "Slice": _slice,
    "Gather": _gather,
    "Concat": _rotation,
}
