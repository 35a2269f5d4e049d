"""Lower ``gather``: to Gather if one axis is indexed, else to Slice or GatherND over windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.plugins.elementwise.arithmetic import where
from smelt.frontends.jax.plugins.indexing import indices
from smelt.frontends.jax.plugins.indexing.dynamic_slicing import same_size
from smelt.frontends.jax.plugins.indexing.take import bounded, is_take
from smelt.frontends.jax.registry import lowers


@lowers("gather")
def gather(
    cx: Lowering,
    x: ir.Value,
    starts: ir.Value,
    *,
    dimension_numbers: Any,
    slice_sizes: Sequence[Dim],
    indices_are_sorted: bool,
    unique_indices: bool,
    mode: object,
    fill_value: float | None,
) -> ir.Value:
    """Lower ``gather`` to Gather, Slice or GatherND.

    In the mode that drops indices out of bounds, they give the fill value. In other modes they are
    clipped, so a dim that a window covers needs no index: its start clips to 0.
    """
    bounds_mode = indices.mode_of(cx, mode)
    shape = cx.avals_in[0].shape
    mapped = [int(dim) for dim in dimension_numbers.start_index_map]
    if not mapped:
        raise cx.unsupported("it has no indexed dims")
    if bounds_mode != indices.DROP:
        collapsed = {int(dim) for dim in dimension_numbers.collapsed_slice_dims}
        covered_dims = {d for d in mapped if same_size(shape[d], slice_sizes[d])} - collapsed
        mapped, starts = _without_covered_dims(cx, starts, mapped, covered_dims)
    if is_take(shape, mapped, dimension_numbers, slice_sizes):
        (axis,) = mapped
        index, valid = bounded(cx, starts, shape[axis], bounds_mode)
        batch = [f"b{i}" for i in range(len(cx.avals_in[1].shape) - 1)]
        dim_labels = [*range(axis), *batch, *range(axis + 1, len(shape))]
        wanted_labels = _labels(dimension_numbers, len(cx.avals_out[0].shape), len(shape))
        gathered = indices.rearranged(
            cx, cx.op("Gather", x, index, axis=axis), dim_labels, wanted_labels
        )
    else:
        index, valid = _clip_starts(cx, starts, mapped, slice_sizes, bounds_mode)
        gathered = _take_windows(cx, x, index, mapped, dimension_numbers, slice_sizes)
    if valid is None:
        return gathered
    unsqueezed = cx.unsqueeze(valid, [int(dim) for dim in dimension_numbers.offset_dims])
    fill = cx.constant(_fill(fill_value, np.dtype(cx.avals_out[0].dtype)))
    return where(cx, unsqueezed, gathered, fill)


def _clip_starts(
    cx: Lowering,
    starts: ir.Value,
    mapped: Sequence[int],
    slice_sizes: Sequence[Dim],
    bounds_mode: str,
) -> tuple[ir.Value, ir.Value | None]:
    """Return the starts clipped into bounds, and a mask of the starts that were in bounds.

    The mask is None unless the mode drops indices out of bounds.
    """
    sizes = [slice_sizes[dim] for dim in mapped]
    limits = [cx.avals_in[0].shape[dim] for dim in mapped]
    index = cx.cast(starts, ir.DataType.INT64)
    # A promise to be in bounds still clips where it is broken, as ``x[i]`` is documented to.
    if indices.in_bounds(cx, index, limits, sizes):
        return index, None
    inside = indices.clipped(cx, index, indices.last_starts(cx, limits, sizes))
    if bounds_mode != indices.DROP:
        return inside, None
    return inside, cx.squeeze(indices.validity(cx, index, inside, len(mapped)), [-1])


def _fill(value: float | None, dtype: np.dtype) -> np.ndarray:
    """Return the value that JAX writes where an index is out of bounds; ``value`` if it is set."""
    if value is not None:
        return np.asarray(value).astype(dtype)
    if dtype.kind == "i":
        return np.asarray(np.iinfo(dtype).min, dtype)
    if dtype.kind == "u":
        return np.asarray(np.iinfo(dtype).max, dtype)
    return np.asarray(True if dtype.kind == "b" else np.nan, dtype)


def _without_covered_dims(
    cx: Lowering, starts: ir.Value, mapped: list[int], covered_dims: set[int]
) -> tuple[list[int], ir.Value]:
    """Return indexed dims and starts without the dims in ``covered_dims``.

    A window covers each of these dims, so its start clips to 0. At least one dim stays indexed.
    """
    kept_columns = [column for column, dim in enumerate(mapped) if dim not in covered_dims] or [0]
    if len(kept_columns) == len(mapped):
        return mapped, starts
    remaining, axis = [mapped[column] for column in kept_columns], len(cx.avals_in[1].shape) - 1
    concat = starts.producer()
    if concat is not None and concat.op_type == "Concat" and len(concat.inputs) == len(mapped):
        # JAX concatenates one column per dim. Without the Gather below, the producers of the
        # other columns become dead code.
        columns = [concat.inputs[column] for column in kept_columns]
        if concat.attributes.get_int("axis") == axis and columns[0] is not None:
            joined = columns[0] if len(columns) == 1 else cx.op("Concat", *columns, axis=axis)
            return remaining, joined
    return remaining, cx.op("Gather", starts, cx.const_i64(kept_columns), axis=axis)


def _take_windows(
    cx: Lowering,
    x: ir.Value,
    index: ir.Value,
    mapped: Sequence[int],
    numbers: Any,
    slice_sizes: Sequence[Dim],
) -> ir.Value:
    """Return the windows of ``x`` at ``index`` (in bounds), with JAX's order of dims.

    1. Dims that a window covers in part, and that have no index, are sliced.
    2. One indexed dim with windows of 1 is a Gather, a single window a Slice.
    3. All else is a GatherND, whose indices address leading dims: the batching and indexed dims of
       ``x`` are moved to the front, and the dims of the result are brought into JAX's order.
    """
    shape, rank = cx.avals_in[0].shape, len(cx.avals_in[1].shape)
    batching = [int(dim) for dim in numbers.operand_batching_dims]
    collapsed = {int(dim) for dim in numbers.collapsed_slice_dims}
    other_dims = [dim for dim in range(len(shape)) if dim not in (*mapped, *batching)]
    if collapsed.intersection(other_dims):
        raise cx.unsupported("it collapses dims that are not indexed")
    partly_covered = [dim for dim in other_dims if not same_size(shape[dim], slice_sizes[dim])]
    x = cx.slice(
        x, [0] * len(partly_covered), [slice_sizes[dim] for dim in partly_covered], partly_covered
    )
    wanted_labels = _labels(numbers, len(cx.avals_out[0].shape), len(shape))
    if len(mapped) == 1 and not batching and same_size(slice_sizes[mapped[0]], 1):
        rows, dim_labels = _take_along(cx, x, index, mapped[0], mapped[0] in collapsed)
        return indices.rearranged(cx, rows, dim_labels, wanted_labels)
    if rank == 1 and not batching:
        return _slice(cx, x, index, mapped, slice_sizes, sorted(collapsed))
    windows = [None if dim in collapsed else slice_sizes[dim] for dim in mapped]
    gathered, dim_labels = _gather_nd(cx, x, index, mapped, numbers, windows)
    return indices.rearranged(cx, gathered, dim_labels, wanted_labels)


def _gather_nd(
    cx: Lowering,
    x: ir.Value,
    index: ir.Value,
    mapped: Sequence[int],
    numbers: Any,
    windows: Sequence[Dim | None],
) -> tuple[ir.Value, list[object]]:
    """Return the windows of ``x`` by one GatherND, and the labels of the result's dims.

    ``windows`` has the window size of each indexed dim, None for a collapsed one.
    """
    rank = len(cx.avals_in[1].shape)
    batching = [int(dim) for dim in numbers.operand_batching_dims]
    other_dims = [d for d in range(len(cx.avals_in[0].shape)) if d not in (*mapped, *batching)]
    index = indices.windowed(cx, index, rank, windows)
    window_dims = [dim for dim, size in zip(mapped, windows, strict=True) if size is not None]
    batching_index_dims = [int(dim) for dim in numbers.start_indices_batching_dims]
    other_index_dims = [i for i in range(rank - 1) if i not in batching_index_dims]
    index = cx.transpose(
        index, [*batching_index_dims, *other_index_dims, *range(rank - 1, rank + len(window_dims))]
    )
    x = cx.transpose(x, [*batching, *mapped, *other_dims])
    gathered = cx.op("GatherND", x, index, batch_dims=len(batching))
    dim_labels = [
        *(f"b{i}" for i in (*batching_index_dims, *other_index_dims)),
        *window_dims,
        *other_dims,
    ]
    return gathered, dim_labels


def _take_along(
    cx: Lowering, x: ir.Value, index: ir.Value, axis: int, is_collapsed: bool
) -> tuple[ir.Value, list[object]]:
    """Return a Gather of single elements along ``axis``, and the labels of its dims.

    The last dim of ``index``, of size 1, becomes the window dim unless that ``is_collapsed``.
    """
    rank = len(cx.avals_in[1].shape)
    batch = [f"b{i}" for i in range(rank - 1)]
    window = [] if is_collapsed else [axis]
    if is_collapsed:
        index = cx.squeeze(index, [rank - 1])
    dim_labels = [*range(axis), *batch, *window, *range(axis + 1, len(cx.avals_in[0].shape))]
    return cx.op("Gather", x, index, axis=axis), dim_labels


def _slice(
    cx: Lowering,
    x: ir.Value,
    index: ir.Value,
    mapped: Sequence[int],
    sizes: Sequence[Dim],
    collapsed: Sequence[int],
) -> ir.Value:
    """Return a single window by Slice, which needs no index tensor."""
    end = cx.op("Add", index, cx.shape_value([sizes[dim] for dim in mapped]))
    return cx.squeeze(cx.op("Slice", x, index, end, cx.const_i64(list(mapped))), collapsed)


def _labels(numbers: Any, out_rank: int, rank: int) -> list[object]:
    """Return a label for each dim of JAX's result: a number is an operand dim, ``bN`` an index dim.

    ``rearranged`` brings the dims of a Gather into this order.
    """
    dropped = {*numbers.collapsed_slice_dims, *numbers.operand_batching_dims}
    kept_dims = iter(dim for dim in range(rank) if dim not in dropped)
    offsets = {int(dim) for dim in numbers.offset_dims}
    batch = (f"b{i}" for i in range(out_rank))
    return [next(kept_dims) if index in offsets else next(batch) for index in range(out_rank)]
