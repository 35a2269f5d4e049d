"""Fold or scan whole axes by any computation that combines two elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.elementwise.arithmetic import where
from smelt.frontends.jax.plugins.windows.monoids import Monoid, check_order
from smelt.frontends.jax.plugins.windows.windows import END

GROUPED = 32
"""XLA reduces an axis longer than this in groups, whatever the computation."""

UNROLLED = 8
"""Up to this many rows are combined by nodes of the graph, more by a Scan."""


def fold_axes(
    cx: Lowering,
    reducer: Monoid,
    xs: Sequence[Operand],
    axes: Sequence[int],
    initial: Sequence[ir.Value],
) -> list[Operand]:
    """Return ``initial`` folded with the elements along ``axes`` in order.

    A monoid combines neighbors in pairs, log2(n) times. Any other computation, and an axis of
    symbolic size, is folded one element after the other.
    """
    shape = xs[0].shape
    axes = sorted(axes)
    kept_axes = [axis for axis in range(len(shape)) if axis not in axes]
    kept_shape = tuple(shape[axis] for axis in kept_axes)
    count = prod(shape[axis] for axis in axes)
    order = [*axes, *kept_axes]
    rows = [
        Operand(
            cx.reshape(cx.transpose(x.value, order), (count, *kept_shape)), (count, *kept_shape)
        )
        for x in xs
    ]
    starts = [Operand(cx.expand(start, kept_shape), kept_shape) for start in initial]
    if not reducer.is_known or not isinstance(count, int):
        sizes = [shape[axis] for axis in axes]
        grouped = any(not isinstance(size, int) or size > GROUPED for size in sizes)
        check_order(cx, reducer, grouped=grouped, moved=False)
        return fold_rows(cx, reducer, rows, starts)
    if count == 0:
        return starts
    while count > 1:
        rows, count = _halved(cx, reducer, rows, count), (count + 1) // 2
    folded = [Operand(cx.squeeze(row.value, [0]), kept_shape) for row in rows]
    return reducer.combine(cx, starts, folded)


def fold_rows(
    cx: Lowering,
    reducer: Monoid,
    rows: Sequence[Operand],
    initial: Sequence[Operand],
    valid: Operand | None = None,
) -> list[Operand]:
    """Return ``initial`` combined with each row in turn, skipping elements that are not ``valid``.

    Up to ``UNROLLED`` rows become nodes, more become a Scan.
    """
    count = rows[0].shape[0]
    if not isinstance(count, int) or count > UNROLLED:
        return scan_rows(cx, reducer, rows, initial, valid=valid)
    result = list(initial)
    for index in range(count):
        row = [_row(cx, x, index) for x in rows]
        result = _combined_where_valid(cx, reducer, result, row, valid and _row(cx, valid, index))
    return result


def _row(cx: Lowering, x: Operand, index: int) -> Operand:
    """Return ``x[index]``, row ``index`` of ``x``."""
    return Operand(cx.squeeze(cx.slice(x.value, [index], [index + 1], [0]), [0]), x.shape[1:])


def _combined_where_valid(
    cx: Lowering,
    reducer: Monoid,
    left: Sequence[Operand],
    right: Sequence[Operand],
    valid: Operand | None,
) -> list[Operand]:
    """Return ``left`` combined with ``right``; where ``valid`` is False, ``left`` alone."""
    results = reducer.combine(cx, left, right)
    if valid is None:
        return results
    return [
        Operand(where(cx, valid.value, new.value, old.value), new.shape)
        for new, old in zip(results, left, strict=True)
    ]


def _halved(cx: Lowering, reducer: Monoid, rows: list[Operand], count: int) -> list[Operand]:
    """Return rows 0 and 1 combined, 2 and 3, and so on; an odd last row stays as it is."""
    pairs, row_shape = count // 2, rows[0].shape[1:]
    sides = [
        [
            Operand(cx.slice(row.value, [start], [2 * pairs], [0], [2]), (pairs, *row_shape))
            for row in rows
        ]
        for start in (0, 1)
    ]
    combined = reducer.combine(cx, *sides)
    if count % 2 == 0:
        return combined
    last_row = [cx.slice(row.value, [count - 1], [END], [0]) for row in rows]
    return [
        Operand(cx.op("Concat", pair.value, last, axis=0), (pairs + 1, *row_shape))
        for pair, last in zip(combined, last_row, strict=True)
    ]


class _Row:
    """Shape and dtype of one row of a scanned array."""

    def __init__(self, shape: tuple[Dim, ...], dtype: np.dtype) -> None:
        self.shape = shape
        self.dtype = dtype


def scan_rows(
    cx: Lowering,
    reducer: Monoid,
    rows: Sequence[Operand],
    initial: Sequence[Operand],
    *,
    running: bool = False,
    reverse: bool = False,
    valid: Operand | None = None,
) -> list[Operand]:
    """Return ``initial`` combined with each row in turn, by a Scan.

    Returns the last result, or the results of all steps if ``running``. Elements that are not
    ``valid`` are skipped. The body takes the results so far, one row each of ``rows``, and one of
    ``valid``; if ``running``, it returns its results twice, as state and as a row to stack.
    """
    shape, count = initial[0].shape, len(rows)
    scanned = [*rows] if valid is None else [*rows, valid]
    inputs = [_body_input(cx, start) for start in (*initial, *initial)]
    mask = None if valid is None else _body_input(cx, Operand(valid.value, shape))
    inputs += [] if mask is None else [mask]
    body = cx.branch([value.value for value in inputs])
    results = _combined_where_valid(body, reducer, inputs[:count], inputs[count : 2 * count], mask)
    outputs = [(x.value, _Row(shape, _dtype(x))) for x in results]
    if running:
        outputs += outputs
    graph = body.finish(outputs)
    results_of_scan = cx.ops(
        "Scan",
        *(start.value for start in initial),
        *(row.value for row in scanned),
        outputs=len(outputs),
        body=graph,
        num_scan_inputs=len(scanned),
        scan_input_directions=[1] * len(scanned) if reverse else None,
        scan_output_directions=[1] * count if reverse and running else None,
    )
    if not running:
        return [Operand(value, shape) for value in results_of_scan]
    return [Operand(value, rows[0].shape) for value in results_of_scan[count:]]


def _body_input(cx: Lowering, like: Operand) -> Operand:
    """Return a new input of a Scan body with the type and shape of ``like``."""
    name, dtype = cx.fresh("loop"), like.value.dtype
    assert dtype is not None
    shape = cx.symbols.shape(like.shape)
    return Operand(ir.Value(name=name, type=ir.TensorType(dtype), shape=shape), like.shape)


def _dtype(x: Operand) -> np.dtype:
    """Return the NumPy dtype of ``x``."""
    assert x.value.dtype is not None
    return np.dtype(x.value.dtype.numpy())
