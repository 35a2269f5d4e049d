"""Whole axes folded, or scanned, by any associative computation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.monoids import Monoid
from smelt.frontends.jax.plugins.windows import END


def fold_axes(
    cx: Lowering,
    computed: Monoid,
    xs: Sequence[Operand],
    axes: Sequence[int],
    initial: Sequence[ir.Value],
) -> list[Operand]:
    """``initial``, then the elements along ``axes`` in their order, as one.

    Neighbours are combined in pairs, again and again; an axis of unknown size step by step.
    """
    shape = xs[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    rest = tuple(shape[axis] for axis in kept)
    count = prod(shape[axis] for axis in axes)
    order = [*axes, *kept]
    rows = [
        Operand(cx.reshape(cx.transpose(x.value, order), (count, *rest)), (count, *rest))
        for x in xs
    ]
    before = [Operand(cx.expand(start, rest), rest) for start in initial]
    if not isinstance(count, int):
        return scan_rows(cx, computed, rows, before)
    if count == 0:
        return before
    while count > 1:
        rows, count = _halved(cx, computed, rows, count), (count + 1) // 2
    folded = [Operand(cx.squeeze(row.value, [0]), rest) for row in rows]
    return computed.combine(cx, before, folded)


def _halved(cx: Lowering, computed: Monoid, rows: list[Operand], count: int) -> list[Operand]:
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
) -> list[Operand]:
    """``before`` combined with each row in turn: the last result, or all if ``running``."""
    shape, count = before[0].shape, len(rows)
    inputs = [_body_input(cx, start) for start in (*before, *before)]
    body = cx.branch([value.value for value in inputs])
    results = computed.combine(body, inputs[:count], inputs[count:])
    outputs = [(x.value, _Row(shape, _dtype(x))) for x in results]
    if running:
        outputs += outputs
    graph = body.finish(outputs)
    made = cx.ops(
        "Scan",
        *(start.value for start in before),
        *(row.value for row in rows),
        outputs=len(outputs),
        body=graph,
        num_scan_inputs=count,
        scan_input_directions=[1] * count if reverse else None,
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
