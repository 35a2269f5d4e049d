"""Fold or scan whole axes by any computation."""

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
"""XLA reduces longer axes in groups, for any computation."""

UNROLLED = 8
"""Up to this many rows are combined by nodes of the graph, more by a Scan."""


def fold_axes(
    cx: Lowering,
    computed: Monoid,
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
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    rest = tuple(shape[axis] for axis in kept)
    count = prod(shape[axis] for axis in axes)
    order = [*axes, *kept]
    rows = [
        Operand(cx.reshape(cx.transpose(x.value, order), (count, *rest)), (count, *rest))
        for x in xs
    ]
    before = [Operand(cx.expand(start, rest), rest) for start in initial]
    if not computed.is_known or not isinstance(count, int):
        grouped = any(not isinstance(n, int) or n > GROUPED for n in (shape[axis] for axis in axes))
        check_order(cx, computed, grouped=grouped, moved=False)
        return fold_rows(cx, computed, rows, before)
    if count == 0:
        return before
    while count > 1:
        rows, count = _halved(cx, computed, rows, count), (count + 1) // 2
    folded = [Operand(cx.squeeze(row.value, [0]), rest) for row in rows]
    return computed.combine(cx, before, folded)


def fold_rows(
    cx: Lowering,
    computed: Monoid,
    rows: Sequence[Operand],
    before: Sequence[Operand],
    valid: Operand | None = None,
) -> list[Operand]:
    """Return ``before`` combined with each row in turn; elements that are not ``valid`` are
    skipped."""
    count = rows[0].shape[0]
    if not isinstance(count, int) or count > UNROLLED:
        return scan_rows(cx, computed, rows, before, valid=valid)
    result = list(before)
    for place in range(count):
        row = [_row(cx, x, place) for x in rows]
        result = _combined(cx, computed, result, row, valid and _row(cx, valid, place))
    return result


def _row(cx: Lowering, x: Operand, place: int) -> Operand:
    return Operand(cx.squeeze(cx.slice(x.value, [place], [place + 1], [0]), [0]), x.shape[1:])


def _combined(
    cx: Lowering,
    computed: Monoid,
    left: Sequence[Operand],
    right: Sequence[Operand],
    valid: Operand | None,
) -> list[Operand]:
    """Return ``left`` combined with ``right``, or ``left`` alone where ``right`` is not
    ``valid``."""
    results = computed.combine(cx, left, right)
    if valid is None:
        return results
    return [
        Operand(where(cx, valid.value, new.value, old.value), new.shape)
        for new, old in zip(results, left, strict=True)
    ]


def _halved(cx: Lowering, computed: Monoid, rows: list[Operand], count: int) -> list[Operand]:
    """Combine rows 0 and 1, 2 and 3, ...; a lone last row stays."""
    pairs, rest = count // 2, rows[0].shape[1:]
    sides = [
        [
            Operand(cx.slice(row.value, [start], [2 * pairs], [0], [2]), (pairs, *rest))
            for row in rows
        ]
        for start in (0, 1)
    ]
    combined = computed.combine(cx, *sides)
    if count % 2 == 0:
        return combined
    lone = [cx.slice(row.value, [count - 1], [END], [0]) for row in rows]
    return [
        Operand(cx.op("Concat", pair.value, last, axis=0), (pairs + 1, *rest))
        for pair, last in zip(combined, lone, strict=True)
    ]


class _Row:
    """The type of one row."""

    def __init__(self, shape: tuple[Dim, ...], dtype: np.dtype) -> None:
        self.shape = shape
        self.dtype = dtype


def scan_rows(
    cx: Lowering,
    computed: Monoid,
    rows: Sequence[Operand],
    before: Sequence[Operand],
    *,
    running: bool = False,
    reverse: bool = False,
    valid: Operand | None = None,
) -> list[Operand]:
    """Return ``before`` combined with each row in turn: the last result, or all if ``running``.

    Elements that are not ``valid`` are skipped.
    """
    shape, count = before[0].shape, len(rows)
    scanned = [*rows] if valid is None else [*rows, valid]
    inputs = [_body_input(cx, start) for start in (*before, *before)]
    mask = None if valid is None else _body_input(cx, Operand(valid.value, shape))
    inputs += [] if mask is None else [mask]
    body = cx.branch([value.value for value in inputs])
    results = _combined(body, computed, inputs[:count], inputs[count : 2 * count], mask)
    outputs = [(x.value, _Row(shape, _dtype(x))) for x in results]
    if running:
        outputs += outputs
    graph = body.finish(outputs)
    made = cx.ops(
        "Scan",
        *(start.value for start in before),
        *(row.value for row in scanned),
        outputs=len(outputs),
        body=graph,
        num_scan_inputs=len(scanned),
        scan_input_directions=[1] * len(scanned) if reverse else None,
        scan_output_directions=[1] * count if reverse and running else None,
    )
    if not running:
        return [Operand(value, shape) for value in made]
    return [Operand(value, rows[0].shape) for value in made[count:]]


def _body_input(cx: Lowering, like: Operand) -> Operand:
    name, dtype = cx.fresh("loop"), like.value.dtype
    assert dtype is not None
    shape = cx.symbols.shape(like.shape)
    return Operand(ir.Value(name=name, type=ir.TensorType(dtype), shape=shape), like.shape)


def _dtype(x: Operand) -> np.dtype:
    assert x.value.dtype is not None
    return np.dtype(x.value.dtype.numpy())
