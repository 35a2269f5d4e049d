"""Requirements of operators with subgraphs: If, Loop, Scan."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.operand_facts.operands import (
    Facts,
    Operands,
    Size,
    Unknown,
    agree,
    is_single,
    zip_known,
)


def _scanned_count(n: Operands) -> int:
    """Return the number of scanned inputs of a Scan; Unknown before opset 9, which had batches."""
    if n.opset < 9:
        raise Unknown
    return n.number("num_scan_inputs", 0)


def _scanned_inputs(n: Operands) -> list[tuple[int, int]]:
    """Return the scanned inputs of a Scan as (index, axis)."""
    count = _scanned_count(n)
    axes = n.numbers("scan_input_axes") if n.has("scan_input_axes") else [0] * count
    return list(enumerate(axes, len(n.node.inputs) - count))


def _body_outputs(n: Operands) -> tuple[list[ir.Value], list[ir.Value]]:
    """Return the outputs of the body of a Scan: the states, and the stacked outputs."""
    states = len(n.node.inputs) - _scanned_count(n)
    results = list(n.graph("body").outputs)
    return results[:states], results[states:]


def _dims(value: ir.Value) -> tuple[Size, ...]:
    """Return the dims of ``value``, with None for symbolic ones; raises Unknown without a shape."""
    if value.shape is None:
        raise Unknown
    return tuple(dim if isinstance(dim, int) else None for dim in value.shape.dims)


def _states_keep_shapes(n: Operands) -> bool:
    """True if each state of a Scan keeps its shape."""
    states, _ = _body_outputs(n)
    return all(agree(n.dims(index), _dims(value)) for index, value in enumerate(states))


def _stacking_axes_exist(n: Operands) -> bool:
    """True if each of scan_output_axes is an axis of its stacked output.

    A stacked output has one axis more than the output of the body, for the iterations.
    """
    _, results = _body_outputs(n)
    axes = n.numbers("scan_output_axes")
    ranks = [len(_dims(value)) + 1 for value in results]
    return all(-rank <= axis < rank for axis, rank in zip_known(axes, ranks))


FACTS: Facts = {
    "If": (("the condition is one element", is_single(0)),),
    "Loop": (
        ("the count is one number", is_single(0)),
        ("the condition is one element", is_single(1)),
    ),
    "Scan": (
        (
            "scan_input_axes are axes of the scanned inputs",
            lambda n: all(-n.rank(i) <= axis < n.rank(i) for i, axis in _scanned_inputs(n)),
        ),
        (
            "scanned inputs have equal lengths",
            lambda n: len({n.size(i, axis) for i, axis in _scanned_inputs(n)}) == 1,
        ),
        ("a state has the same shape in all iterations", _states_keep_shapes),
        ("scan_output_axes are axes of the stacked outputs", _stacking_axes_exist),
    ),
}
