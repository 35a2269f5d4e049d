"""Move inserted dims of size 1 behind operators that ignore them, down to the next Reshape.

    before   x: B,H,S,S ─> Reshape(B,H,S,1,S) ─> Mul(2) ─> Softmax ─> Transpose ─> Reshape ─> y
    after    x ─> Mul(2) ─> Softmax ─> Transpose ─> Unsqueeze ─> Reshape ─> y

The Unsqueeze and the Reshape then merge. Grouped attention with one group leaves such chains. A
Reshape that also splits dims (TensorFlow's einsums of heads) keeps only the split.

Needs    (1) a chain of Transpose, Softmax and elementwise operators, each with one reader, that
         ends in a Reshape; (2) other operands with size 1 along these dims, or without them.
Keeps    (1) dims that another operand expands; (2) a Softmax over such a dim; (3) chains with other
         readers, that are outputs, or that do not end in a Reshape.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.known_forms import is_known
from smelt.ir.opset import RESHAPES
from smelt.ir.pattern import one_of, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import same_dim
from smelt.operators.elementwise import UNARY
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.layout.commuted import without_axes
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.simplify.merge_consecutive_reshapes import constant_shape, inserted

Axes: TypeAlias = tuple[int, ...]
"""Positions of the inserted dims of size 1."""

LONGEST = 12
"""Limit of nodes between the inserted dims and the Reshape."""

_SOFTMAX = ("Softmax", "LogSoftmax")
_UNARY = sorted(UNARY)
_BINARY = ("Add", "Div", "Max", "Min", "Mul", "Sub")
"""Operators that, like Where, may have the dims in any operand."""

_inserted = op(["Reshape", "Unsqueeze"], var("x"), rest=True, name="inserted")


@rule(
    one_of(
        op(["Transpose", *_SOFTMAX, *_UNARY], _inserted),
        op(list(_BINARY), _inserted, var("b")),
        op(list(_BINARY), var("a"), _inserted),
        op("Where", var("a"), _inserted, var("b")),
        op("Where", var("a"), var("b"), _inserted),
    ),
    same_shape=True,
)
def unit_dims(m: Match, b: Builder) -> Replacement:
    """Compute the first operator of the chain without the dims, and unsqueeze its result."""
    with_dims = m["inserted"]
    axes = inserted(m["x"].shape, with_dims.shape)
    axes_and_target = None if axes else _without_ones(m["x"].shape, with_dims.shape)
    axes = axes_and_target[0] if axes_and_target is not None else axes
    if not axes:
        return None
    axes_of_result = _axes_behind(m.root, with_dims, axes)
    if axes_of_result is None or not _ends_in_a_reshape(m.root.outputs[0], axes_of_result):
        return Miss("no later Reshape is proved to remove the inserted dims of 1")
    x = m["x"]
    if axes_and_target is not None:
        x = b.op("Reshape", x, b.const_i64(axes_and_target[1]))
    if m.root.op_type == "Transpose":
        perm = permutation(m.root)
        assert perm is not None
        value = b.op("Transpose", x, perm=without_axes(perm, axes))
    elif m.root.op_type in _SOFTMAX:
        value = b.op(m.root.op_type, x, axis=_kept_axis(m.root, with_dims, axes))
    else:
        rank = len(m.root.outputs[0].shape or ())
        operands = [
            x if operand is with_dims else _squeezed(m, b, operand, axes, rank)
            for operand in m.root.inputs
            if operand is not None
        ]
        value = b.like(m.root, *operands)
    return b.op("Unsqueeze", value, b.const_i64(axes_of_result))


def _without_ones(
    source: ir.Shape | None, result: ir.Shape | None
) -> tuple[Axes, list[int]] | None:
    """Return the axes of size 1 of a Reshape that also splits dims, and its target without them.

    Dims of size 1 count from the first dim on in which ``result`` differs from ``source``. None if
    there is none, or if no constant can state the target.
    """
    if source is None or result is None:
        return None
    first = 0
    while first < min(len(source), len(result)) and same_dim(source[first], result[first]):
        first += 1
    axes = tuple(axis for axis in range(first, len(result)) if result[axis] == 1)
    if not axes:
        return None
    kept = [dim for axis, dim in enumerate(result.dims) if axis not in axes]
    target = constant_shape(source, ir.Shape(kept))
    return (axes, target) if target is not None else None


def _ends_in_a_reshape(value: ir.Value, axes: Axes) -> bool:
    """True if operators that ignore the dims ``axes`` lead from ``value`` to a Reshape."""
    for _ in range(LONGEST):
        if not scope.has_one_use(value) or value.is_graph_output():  # keeps 3
            return False
        (reader,) = scope.consumers(value)
        if reader.domain or reader.graph is not _graph(value):
            return False
        if reader.op_type in RESHAPES:
            return reader.inputs[0] is value
        axes_behind = _axes_behind(reader, value, axes)
        if axes_behind is None:
            return False
        value, axes = reader.outputs[0], axes_behind
    return False


def _graph(value: ir.Value) -> ir.Graph | ir.Function | None:
    """Return the graph whose node computes ``value``; None for an input or a constant."""
    producer = value.producer()
    return None if producer is None else producer.graph


def _axes_behind(node: ir.Node, value: ir.Value, axes: Axes) -> Axes | None:
    """Return the positions of the dims ``axes`` of ``value`` in the result of ``node``.

    None if the operator is none of ``_HANDLERS``, or may treat these dims in a special way.
    """
    handler = _HANDLERS.get(node.op_type)
    if handler is None or not is_known(node):  # needs 1
        return None
    return handler(node, value, axes)


def _axes_behind_transpose(node: ir.Node, value: ir.Value, axes: Axes) -> Axes | None:
    """Return where a Transpose moves ``axes``; None for an unknown permutation."""
    perm = permutation(node)
    return None if perm is None else tuple(i for i, axis in enumerate(perm) if axis in axes)


def _axes_behind_softmax(node: ir.Node, value: ir.Value, axes: Axes) -> Axes | None:
    """Return ``axes`` if none of them is the axis of the Softmax, else None."""
    return None if _kept_axis(node, value, axes) is None else axes


def _kept_axis(node: ir.Node, value: ir.Value, axes: Axes) -> int | None:
    """Return the axis of a Softmax without the dims ``axes``; None if it is one of them."""
    attribute = node.attributes.get("axis")
    if value.shape is None:
        return None
    axis = (-1 if attribute is None else attribute.as_int()) % len(value.shape)
    if axis in axes:  # keeps 2
        return None
    return axis - sum(removed_axis < axis for removed_axis in axes)


def _axes_behind_elementwise(node: ir.Node, value: ir.Value, axes: Axes) -> Axes | None:
    """Return ``axes`` if all operands have size 1 along them, else None."""
    result = node.outputs[0].shape
    if result is None or value.shape is None or len(result) != len(value.shape):
        return None
    for other in node.inputs:
        if other is None or other.shape is None:
            return None
        # needs 2, keeps 1
        if any(other.shape[axis] != 1 for axis in _axes_of_operand(other.shape, axes, len(result))):
            return None
    return axes


def _axes_of_operand(shape: ir.Shape, axes: Axes, rank: int) -> Axes:
    """Return ``axes``, counted in a result with ``rank`` dims, as axes of an operand of ``shape``
    that broadcasts to it; axes that the operand lacks are left out."""
    missing = rank - len(shape)
    return tuple(axis - missing for axis in axes if axis >= missing)


def _squeezed(m: Match, b: Builder, value: ir.Value, axes: Axes, rank: int) -> ir.Value:
    """Return the operand ``value`` without the dims ``axes`` of the result."""
    assert value.shape is not None
    axes_here = _axes_of_operand(value.shape, axes, rank)
    if not axes_here:
        return value
    array = m.array(value)
    if array is not None:
        return b.constant(np.squeeze(array, axes_here))
    return b.op("Squeeze", value, b.const_i64(axes_here))


_HANDLERS: Mapping[str, Callable[[ir.Node, ir.Value, Axes], Axes | None]] = {
    # Each handler takes a node, its operand and the axes.
    "Transpose": _axes_behind_transpose,
    **dict.fromkeys(_SOFTMAX, _axes_behind_softmax),
    **dict.fromkeys([*_UNARY, *_BINARY, "Where"], _axes_behind_elementwise),
}

sink_unit_dims = rule_pass(
    "sink_unit_dims",
    __doc__,
    [unit_dims],
    exactness=EXACT,
    before=("merge_consecutive_reshapes",),
)
