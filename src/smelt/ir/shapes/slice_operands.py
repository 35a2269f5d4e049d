"""The operands of a Slice that shape inference reads: axes, and bounds if they are constant."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.rows import Cut


def sliced_axes(node: ir.Node, rank: int) -> list[int] | None:
    """Return the axes that a Slice cuts, >= 0; None if they are unknown or invalid."""
    if is_computed_input(node, 3):
        return None
    axes = constant_ints(node, 3)
    if axes is None:
        starts = node.inputs[1]
        if starts is None or starts.shape is None or len(starts.shape) != 1:
            return None
        count = starts.shape[0]
        if not isinstance(count, int) or count > rank:
            return None
        axes = list(range(count))
    axes = [axis + rank if axis < 0 else axis for axis in axes]
    if any(not 0 <= axis < rank for axis in axes) or len(set(axes)) < len(axes):
        return None
    return axes


def constant_cuts(node: ir.Node, rank: int) -> dict[int, Cut]:
    """Return start, end and step by axis if all are constant, else an empty dict."""
    starts, ends, axes, steps = (constant_ints(node, index) for index in range(1, 5))
    if (
        starts is None
        or ends is None
        or any(is_computed_input(node, index) for index in range(1, 5))
    ):
        return {}
    axes = axes if axes is not None else list(range(len(starts)))
    steps = steps if steps is not None else [1] * len(starts)
    if len({len(starts), len(ends), len(axes), len(steps)}) != 1:
        return {}
    rows = zip(axes, starts, ends, steps, strict=True)
    return {axis % rank: Cut(start, end, step) for axis, start, end, step in rows}


def constant_ints(node: ir.Node, index: int) -> list[int] | None:
    """Return a constant operand as a list; None if it is absent or computed."""
    value = node.inputs[index] if len(node.inputs) > index else None
    if value is None or value.is_graph_input():
        return None
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(item) for item in tensor.numpy().reshape(-1)]


def is_computed_input(node: ir.Node, index: int) -> bool:
    """True if input ``index`` is present and not constant."""
    if len(node.inputs) <= index:
        return False
    value = node.inputs[index]
    if value is None:
        return False
    return value.is_graph_input() or ir.convenience.get_const_tensor(value) is None
