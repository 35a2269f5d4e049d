"""Slices of dims whose size is not known."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import onnx_ir as ir
from onnx_shape_inference import ShapeInferenceContext

from smelt.ir.rows import UNBOUNDED, Cut, rows_taken

ShapeRule: TypeAlias = Callable[[ShapeInferenceContext, ir.Node], None]

END = 2**31 - 1
"""An end from here on means the end, whatever the size: no dim is longer."""


def bounded(theirs: ShapeRule) -> ShapeRule:
    """The rows that are left: of an unknown dim, ``x[0:5]`` leaves min(N, 5), not 5.

    Of a known one, the library misses what lies beyond the ends.
    """

    def infer(context: ShapeInferenceContext, node: ir.Node) -> None:
        theirs(context, node)
        source, output = node.inputs[0], node.outputs[0]
        if source is None or source.shape is None or output.shape is None:
            return
        ranges = _ranges(node, len(source.shape))
        dims: list[int | ir.SymbolicDim] = []
        for axis, (before, after) in enumerate(zip(source.shape, output.shape, strict=True)):
            if isinstance(before, int) and axis in ranges:
                dims.append(_known_rows(before, ranges[axis], after))
                continue
            if isinstance(before, int) or not (isinstance(after, int) or axis in ranges):
                dims.append(after)
                continue
            size = _rows(before, *ranges.get(axis, (-1, -1, -1)))
            guess = context.new_symbolic_dim() if isinstance(after, int) else after
            dims.append(guess if size is None else size)
        output.shape = ir.Shape(dims)

    return infer


def _known_rows(size: int, cut: Cut, theirs: int | ir.SymbolicDim) -> int | ir.SymbolicDim:
    """How many rows ``cut`` leaves of ``size``; not ours to say where runtimes differ."""
    _, end, step = cut
    return theirs if not step or (step < 0 and end in UNBOUNDED) else len(rows_taken(size, cut))


def _rows(dim: ir.SymbolicDim, start: int, end: int, step: int) -> int | ir.SymbolicDim | None:
    """How many rows ``[start:end]`` leaves of an unknown dim; None unless it runs forward."""
    if step != 1 or start < 0 or end < 0 or dim.value is None:
        return None
    if start >= end:
        return 0
    if end >= END:
        return dim if start == 0 else ir.SymbolicDim(f"Max(0, {dim.value} - {start})")
    last = f"Min({end}, {dim.value})"
    return ir.SymbolicDim(last if start == 0 else f"Max(0, {last} - {start})")


def _ranges(node: ir.Node, rank: int) -> dict[int, tuple[int, int, int]]:
    """Start, end and step by axis, where all of them are constant; empty if some are not."""
    starts, ends, axes, steps = (_constant_ints(node, index) for index in range(1, 5))
    if starts is None or ends is None or any(at_run_time(node, index) for index in range(1, 5)):
        return {}
    axes = axes if axes is not None else list(range(len(starts)))
    steps = steps if steps is not None else [1] * len(starts)
    if len({len(starts), len(ends), len(axes), len(steps)}) != 1:
        return {}
    rows = zip(axes, starts, ends, steps, strict=True)
    return {axis % rank: (start, end, step) for axis, start, end, step in rows}


def _constant_ints(node: ir.Node, index: int) -> list[int] | None:
    """A constant operand as a list; None if it is absent or computed."""
    value = node.inputs[index] if len(node.inputs) > index else None
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(item) for item in tensor.numpy().reshape(-1)]


def at_run_time(node: ir.Node, index: int) -> bool:
    """True if input ``index`` is given, but no constant."""
    if len(node.inputs) <= index:
        return False
    value = node.inputs[index]
    if value is None:
        return False
    return value.is_graph_input() or ir.convenience.get_const_tensor(value) is None
