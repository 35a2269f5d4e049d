"""Handlers for operators with axis attributes or inputs: they commute with the axes renumbered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.node_inputs import optional_input
from smelt.ir.same_shape import static_shape
from smelt.passes.layout.commuted import (
    Commuted,
    Handler,
    Operands,
    Perm,
    Perms,
    first_is_data,
    inverse,
    normalized,
    rebuilt,
    without_axes,
)

_Build: TypeAlias = Callable[[Builder, Operands], Sequence[ir.Value]]


def _reduction(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute a reduction; without ``keepdims`` the reduced axes leave the permutation; None for
    unknown axes.
    """
    axes = opset.reduction_axes(node, constants)
    if not axes:
        return None
    old_axes = sorted(perm[axis] for axis in axes)
    result = perm if opset.keeps_dims(node) else without_axes(perm, old_axes)
    if len(axes) == len(perm):
        result = tuple(range(len(result)))  # all remaining dims are 1
    return Commuted(result, _with_axes(node, old_axes))


def _with_axes(node: ir.Node, old_axes: list[int]) -> _Build:
    """Return a function that builds ``node`` with ``old_axes``, as attribute or input as before.

    A node without axes stays without: it means all axes (or all of size 1) in any layout.
    """

    def build(b: Builder, operands: Operands) -> Sequence[ir.Value]:
        """Return the results of ``node`` on ``operands``, reduced over ``old_axes``."""
        attribute = node.attributes.get("axes")
        if attribute is not None and attribute.as_ints():
            return rebuilt(b, node, operands[:1], axes=old_axes)
        if len(operands) < 2 or operands[1] is None or static_shape(operands[1]) == (0,):
            return rebuilt(b, node, operands)
        return rebuilt(b, node, [operands[0], b.const_i64(old_axes)])

    return build


def _arg_extreme(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute ArgMax and ArgMin: the index counts along the same axis in any layout; None for an
    axis out of range.
    """
    axes = normalized([node.attributes.get_int("axis", 0)], len(perm))
    if axes is None:
        return None
    axis = perm[axes[0]]
    result = perm if opset.keeps_dims(node) else without_axes(perm, [axis])
    return Commuted(result, lambda b, operands: rebuilt(b, node, operands, axis=axis))


def _along_axis(default: int | None, *, all_inputs: bool = True) -> Handler:
    """Return a handler for operators that work along one axis and keep the layout."""

    def handle(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
        """Return ``node`` on untransposed operands, with its axis renumbered, or None."""
        attribute = node.attributes.get("axis")
        axis = attribute.as_int() if attribute is not None else default
        if axis is None or not -len(perm) <= axis < len(perm):
            return None
        data = node.inputs if all_inputs else node.inputs[:1]
        if any(value is None or value not in perms for value in data):
            return None
        return Commuted(perm, lambda b, operands: rebuilt(b, node, operands, axis=perm[axis]))

    return handle


def _squeeze(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Squeeze. Without axes it removes all dims of size 1, so every size must be known."""
    source = node.inputs[0]
    axes = opset.axes_of(node, constants)
    if len(node.inputs) < 2 and "axes" not in node.attributes and source is not None:
        if source.shape is None or not source.shape.is_static():
            return None
        axes = tuple(axis for axis, dim in enumerate(source.shape) if dim == 1)
    positive_axes = normalized(axes, len(perm))
    if not positive_axes:
        return None
    old_axes = sorted(perm[axis] for axis in positive_axes)
    return Commuted(without_axes(perm, old_axes), _with_axes(node, old_axes))


def _unsqueeze(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Unsqueeze: new dims keep their positions, the others are transposed around them; None
    for unknown axes.
    """
    axes = opset.axes_of(node, constants)
    positive_axes = normalized(axes, len(perm) + len(axes)) if axes else None
    if positive_axes is None:
        return None
    rank = len(perm) + len(positive_axes)
    others = [position for position in range(rank) if position not in positive_axes]
    result = list(range(rank))
    for index, axis in enumerate(perm):
        result[others[index]] = others[axis]
    return Commuted(tuple(result), _with_axes(node, sorted(positive_axes)))


def _pad(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Pad: renumber its axes if given, else permute the pads."""
    rank = len(perm)
    axes_input = optional_input(node, 3)
    if axes_input is not None:
        return _with_axes_input(node, 3, normalized(constants.ints(axes_input), rank), perm)
    pads = constants.ints(node.inputs[1])
    if pads is None or len(pads) != 2 * rank:
        return None
    order = inverse(perm)
    old_pads = [pads[offset + axis] for offset in (0, rank) for axis in order]
    return Commuted(
        perm,
        lambda b, operands: rebuilt(b, node, [operands[0], b.const_i64(old_pads), *operands[2:]]),
    )


def _slice(node: ir.Node, perm: Perm, perms: Perms, constants: Constants) -> Commuted | None:
    """Commute Slice; without axes, starts belong to the first axes; None for unknown axes."""
    axes: tuple[int, ...] | None
    axes_input = optional_input(node, 3)
    if axes_input is not None:
        axes = constants.ints(axes_input)
    else:
        starts = node.inputs[1]
        count = static_shape(starts) if starts is not None else None
        axes = tuple(range(count[0])) if count is not None and len(count) == 1 else None
    return _with_axes_input(node, 3, normalized(axes, len(perm)), perm)


def _with_axes_input(
    node: ir.Node, index: int, axes: tuple[int, ...] | None, perm: Perm
) -> Commuted | None:
    """Return ``node`` with ``axes``, its input ``index``, renumbered; None if ``axes`` are unknown.

    The new axes have the dtype of that input; without it, of input 1, which are the starts of a
    Slice.
    """
    axes_input = node.inputs[index] if len(node.inputs) > index else None
    typed = axes_input if axes_input is not None else node.inputs[1]
    if axes is None or typed is None or typed.dtype is None:
        return None
    untransposed_axes = np.asarray([perm[axis] for axis in axes], dtype=typed.dtype.numpy())

    def build(b: Builder, operands: Operands) -> Sequence[ir.Value]:
        """Return the results of ``node`` on ``operands`` with the renumbered axes as input
        ``index``."""
        inputs = [*operands, *[None] * (index + 1 - len(operands))]
        inputs[index] = b.constant(untransposed_axes)
        return rebuilt(b, node, inputs)

    return Commuted(perm, build)


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(opset.REDUCTIONS, first_is_data(_reduction)),
    "ArgMax": first_is_data(_arg_extreme),
    "ArgMin": first_is_data(_arg_extreme),
    "Concat": _along_axis(None),
    "LogSoftmax": _along_axis(-1),
    "Pad": first_is_data(_pad),
    "Slice": first_is_data(_slice),
    "Softmax": _along_axis(-1),
    "Split": first_is_data(_along_axis(0, all_inputs=False)),
    "Squeeze": first_is_data(_squeeze),
    "Unsqueeze": first_is_data(_unsqueeze),
}
"""The handler of each operator."""
