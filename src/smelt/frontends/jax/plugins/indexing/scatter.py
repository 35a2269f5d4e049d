"""Lower ``scatter`` and its variants to ScatterND over windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.indexing import indices
from smelt.frontends.jax.plugins.indexing.dynamic_slicing import same_size
from smelt.frontends.jax.plugins.indexing.padding import edged
from smelt.frontends.jax.plugins.indexing.scatter_apply import applied
from smelt.frontends.jax.plugins.indexing.scatter_window import Box, box_of, cut_out, put_in
from smelt.frontends.jax.plugins.programs.creation import counted
from smelt.frontends.jax.registry import lowers

REDUCTIONS = {
    "scatter": "none",
    "scatter-add": "add",
    "scatter-sub": "add",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
}

WIDER = {
    ir.DataType.FLOAT16: ir.DataType.FLOAT,
    ir.DataType.BFLOAT16: ir.DataType.FLOAT,
    ir.DataType.BOOL: ir.DataType.INT32,
}
"""Wider types to combine elements in, because few runtimes combine them in the narrow type."""

ELEMENTWISE = {"add": "Add", "mul": "Mul", "min": "Min", "max": "Max"}
"""The operator that combines a window with updates of the same shape, by reduction."""


def _lower(reduction: str) -> Callable[..., ir.Value | list[Operand]]:
    """Return the lowering of a scatter that combines by ``reduction``."""

    def lower(
        cx: Lowering,
        x: ir.Value,
        starts: ir.Value,
        updates: ir.Value,
        *,
        update_jaxpr: object,
        update_consts: object,
        dimension_numbers: Any,
        indices_are_sorted: bool,
        unique_indices: bool,
        mode: object,
    ) -> ir.Value | list[Operand]:
        """Lower a scatter; ``applied`` handles a scatter that applies a function."""
        if reduction == "none" and update_jaxpr is not None:
            body = update_jaxpr, update_consts
            return applied(cx, *body, unique_indices, dimension_numbers, mode)
        if cx.equation.primitive.name == "scatter-sub":
            updates = cx.op("Sub", cx.const_like(0, updates), updates)
        return _scatter(cx, (x, starts, updates), dimension_numbers, mode, reduction)

    return lower


for _primitive, _reduction in REDUCTIONS.items():
    lowers(_primitive)(_lower(_reduction))


@dataclass(frozen=True)
class Roles:
    """The role of each operand dim in a scatter.

    ScatterND's index has a column for each ``batching``, ``mapped`` and ``partial`` dim. JAX's
    index has one for each ``mapped`` dim only. A window covers ``full`` dims. ``windows`` holds the
    window size of each dim that the updates have.
    """

    batching: list[int]
    mapped: list[int]
    partial: list[int]
    full: list[int]
    windows: dict[int, Dim]

    @property
    def indexed(self) -> list[int]:
        """The dims with a column in the index, in the order of the columns."""
        return [*self.batching, *self.mapped, *self.partial]


def _dim_roles(cx: Lowering, numbers: Any) -> Roles:
    """Return the roles of the operand dims, from the scatter's dimension numbers."""
    shape, update_shape = cx.avals_in[0].shape, cx.avals_in[2].shape
    batching = [int(dim) for dim in numbers.operand_batching_dims]
    mapped = [int(dim) for dim in numbers.scatter_dims_to_operand_dims]
    dropped = {*(int(dim) for dim in numbers.inserted_window_dims), *batching}
    kept_dims = [dim for dim in range(len(shape)) if dim not in dropped]
    sizes = [update_shape[int(dim)] for dim in numbers.update_window_dims]
    windows = dict(zip(kept_dims, sizes, strict=True))
    unmapped = sorted(dropped.difference(mapped, batching))
    other_dims = [dim for dim in kept_dims if dim not in mapped]
    partial = [dim for dim in other_dims if not same_size(shape[dim], windows[dim])]
    full = [dim for dim in other_dims if dim not in partial]
    return Roles(batching, mapped, [*partial, *unmapped], full, windows)


def _scatter(
    cx: Lowering,
    operands: tuple[ir.Value, ir.Value, ir.Value],
    numbers: Any,
    mode: object,
    reduction: str,
) -> ir.Value:
    """Lower one scatter: a single window at a constant place by slices, others by ScatterND.

    ScatterND indexes leading dims, so the indexed dims are moved to the front and back again. If
    the mode drops updates out of bounds, they go to an extra last row, which is cut off at the end.
    """
    x, starts, updates = operands
    roles, shape = _dim_roles(cx, numbers), cx.avals_in[0].shape
    if not roles.indexed and len(cx.avals_in[1].shape) == 1:  # One window that covers everything.
        return updates if reduction == "none" else cx.op(ELEMENTWISE[reduction], x, updates)
    if not roles.indexed:
        raise cx.unsupported("it has no indexed dims")
    box = box_of(cx, starts, roles.mapped, roles.indexed, roles.windows)
    if box is not None and not roles.batching:
        return _with_window(cx, (x, updates), roles, box, reduction)
    order = [*roles.indexed, *roles.full]
    data = cx.transpose(x, order)
    index, dropped = _scatter_nd_index(cx, starts, numbers, roles, mode)
    if dropped:
        zero = cx.constant(np.zeros((), np.dtype(cx.avals_in[0].dtype)))
        data = edged(cx, data, cx.const_i64([0, 1]), zero, [0])
    updates = cx.transpose(updates, _update_dims_in_order(cx, numbers, roles))
    data = _scatter_reduced(cx, data, index, updates, reduction)
    if dropped:
        data = cx.slice(data, [0], [shape[order[0]]], [0])
    return indices.rearranged(cx, data, order, range(len(shape)))


def _update_dims_in_order(cx: Lowering, numbers: Any, roles: Roles) -> list[int]:
    """Return the dims of the updates in ScatterND's order.

    ScatterND wants the dims of the indices first, then the window dims of indexed operand dims,
    then the window dims of the other operand dims.
    """
    window_dims = [int(dim) for dim in numbers.update_window_dims]
    index_dims = [i for i in range(len(cx.avals_in[2].shape)) if i not in window_dims]
    update_dim_of = dict(zip(sorted(roles.windows), window_dims, strict=True))
    indexed = [update_dim_of[dim] for dim in roles.indexed if dim in update_dim_of]
    return [*index_dims, *indexed, *(update_dim_of[dim] for dim in roles.full)]


def _with_window(
    cx: Lowering, operands: tuple[ir.Value, ir.Value], roles: Roles, box: Box, reduction: str
) -> ir.Value:
    """Return the operand with one window replaced by its combination with the updates."""
    x, updates = operands
    dropped = [dim for dim in range(len(cx.avals_in[0].shape)) if dim not in roles.windows]
    window = cx.unsqueeze(updates, dropped) if dropped else updates
    if reduction != "none":
        assert x.dtype is not None
        wide = ir.DataType.INT32 if x.dtype is ir.DataType.BOOL else x.dtype
        old, new = cx.cast(cut_out(cx, x, box), wide), cx.cast(window, wide)
        window = cx.cast(cx.op(ELEMENTWISE[reduction], old, new), x.dtype)
    return put_in(cx, x, window, box)


def _scatter_reduced(
    cx: Lowering, data: ir.Value, index: ir.Value, updates: ir.Value, reduction: str
) -> ir.Value:
    """Return ScatterND with ``reduction``, in a type in which runtimes have the reduction."""
    assert data.dtype is not None
    dtype = data.dtype
    computed_type = WIDER.get(dtype, dtype) if reduction != "none" else dtype
    data, updates = cx.cast(data, computed_type), cx.cast(updates, computed_type)
    result = cx.op("ScatterND", data, index, updates, reduction=reduction)
    return cx.cast(_with_nan(cx, data, index, updates, result, reduction), dtype)


def _with_nan(
    cx: Lowering,
    data: ir.Value,
    index: ir.Value,
    updates: ir.Value,
    result: ir.Value,
    reduction: str,
) -> ir.Value:
    """Return ``result`` with NaN wherever max or min combined a NaN.

    Runtimes skip NaN in extremes, so a second ScatterND counts the NaN of each element.
    """
    assert data.dtype is not None
    if reduction not in ("min", "max") or not data.dtype.is_floating_point():
        return result
    nans = [cx.cast(cx.op("IsNaN", x), ir.DataType.FLOAT) for x in (data, updates)]
    count = cx.op("ScatterND", nans[0], index, nans[1], reduction="add")
    nan = cx.op("Greater", count, cx.const_like(0, count))
    return cx.op("Where", nan, cx.const_like(np.nan, data), result)


def _scatter_nd_index(
    cx: Lowering, starts: ir.Value, numbers: Any, roles: Roles, mode: object
) -> tuple[ir.Value, bool]:
    """Return ScatterND's index of every updated element, and whether updates may be dropped.

    A dropped update gets an index past the last row.
    """
    shape, rank = cx.avals_in[0].shape, len(cx.avals_in[1].shape)
    index, valid = _clip_or_mask(cx, cx.cast(starts, ir.DataType.INT64), roles, mode)
    columns = _batch_columns(cx, numbers, roles)
    columns += [index] if roles.mapped else []
    if roles.partial:
        batch = cx.shape_value([*cx.avals_in[1].shape[:-1], len(roles.partial)])
        columns.append(cx.op("Expand", cx.const_i64([0]), batch))
    index = columns[0] if len(columns) == 1 else cx.op("Concat", *columns, axis=-1)
    windows = [roles.windows.get(dim) for dim in roles.indexed]
    index = indices.windowed(cx, index, rank, windows)
    if valid is None:
        return index, False
    window_dims = sum(size is not None for size in windows)
    unsqueezed = cx.unsqueeze(valid, range(rank - 1, rank - 1 + window_dims))
    past_the_end = cx.shape_value([shape[roles.indexed[0]], *[0] * (len(roles.indexed) - 1)])
    return cx.op("Where", unsqueezed, index, past_the_end), True


def _clip_or_mask(
    cx: Lowering, index: ir.Value, roles: Roles, mode: object
) -> tuple[ir.Value, ir.Value | None]:
    """Return the starts, and a mask that is True for starts in bounds.

    In mode clip the starts are clipped. The mask is None if all starts are in bounds.
    """
    bounds_mode = indices.mode_of(cx, mode)
    limits = [cx.avals_in[0].shape[dim] for dim in roles.mapped]
    sizes = [roles.windows.get(dim, 1) for dim in roles.mapped]
    # A promise to be in bounds still drops where it is broken, as gradients of ``x[i]`` do.
    if not limits or indices.in_bounds(cx, index, limits, sizes):
        return index, None
    last = indices.last_starts(cx, limits, sizes)
    if bounds_mode == indices.CLIP:
        return indices.clipped(cx, index, last), None
    return index, indices.validity(cx, index, indices.clipped(cx, index, last), len(limits))


def _batch_columns(cx: Lowering, numbers: Any, roles: Roles) -> list[ir.Value]:
    """Return an index column for each batch dim: the number of the batch, 0, 1, 2, ...

    A column has the shape of ``starts`` with a last dim of 1.
    """
    shape, batch = cx.avals_in[0].shape, cx.avals_in[1].shape[:-1]
    columns = []
    positions = [int(dim) for dim in numbers.scatter_indices_batching_dims]
    for dim, position in zip(roles.batching, positions, strict=True):
        batch_numbers = counted(cx, shape[dim], np.dtype(np.int64))
        along_dim = cx.unsqueeze(batch_numbers, range(1, len(batch) - position + 1))
        columns.append(cx.op("Expand", along_dim, cx.shape_value([*batch, 1])))
    return columns
