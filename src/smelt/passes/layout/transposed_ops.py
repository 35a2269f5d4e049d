"""How operators commute with Transpose: ``op(T(x)) = T'(op'(x))``.

Each handler looks at a node whose tensor operands are all transposed by ``perm`` and answers with
the permutation of the result and a function that builds the node on the operands as they were
before. None means that the operator does not commute, or not with these operands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.build import Builder
from smelt.ir.constants import Constants

Perm: TypeAlias = tuple[int, ...]
Operands: TypeAlias = Sequence["ir.Value | None"]


@dataclass(frozen=True)
class Commuted:
    """``perm`` takes the new result to the old; ``build`` makes it from untransposed operands."""

    perm: Perm
    build: Callable[[Builder, Operands], ir.Value]


def commute(node: ir.Node, perms: Mapping[ir.Value, Perm], constants: Constants) -> Commuted | None:
    """How ``node`` commutes, if it does; ``perms`` holds the operands known to be transposed."""
    if node.domain or len(node.outputs) != 1 or any(a.is_ref() for a in node.attributes.values()):
        return None
    found = {perms[value] for value in node.inputs if value is not None and value in perms}
    if len(found) != 1:
        return None
    perm = found.pop()
    if node.op_type in opset.ELEMENTWISE or node.op_type == "Dropout":
        return _elementwise(node, perm, perms, constants)
    handler = _HANDLERS.get(node.op_type)
    return handler(node, perm, perms, constants) if handler is not None else None


def _elementwise(
    node: ir.Node, perm: Perm, perms: Mapping[ir.Value, Perm], constants: Constants
) -> Commuted | None:
    """Other operands must be scalars, or constants, which are permuted back."""
    first_only = node.op_type in opset.UNARY or node.op_type in ("Clip", "Dropout")
    if first_only and (node.inputs[0] is None or node.inputs[0] not in perms):
        return None
    permuted: dict[int, np.ndarray] = {}
    for index, value in enumerate(node.inputs):
        if value is None or value in perms or (first_only and index > 0):
            continue
        if value.shape is not None and len(value.shape) == 0:
            continue
        array = constants.get(value, limit=None)
        if array is None or array.ndim > len(perm):
            return None
        permuted[index] = _untransposed(array, perm)

    def build(b: Builder, operands: Operands) -> ir.Value:
        given = [
            b.constant(permuted[i]) if i in permuted else value for i, value in enumerate(operands)
        ]
        return b.like(node, *given)

    return Commuted(perm, build)


def _untransposed(array: np.ndarray, perm: Perm) -> np.ndarray:
    """A broadcasting constant in the layout before the Transpose; scalars stay as they are."""
    if array.size == 1:
        return array.reshape(()) if array.ndim else array
    full = array.reshape((1,) * (len(perm) - array.ndim) + array.shape)
    return np.ascontiguousarray(full.transpose(inverse(perm)))


def _reduction(
    node: ir.Node, perm: Perm, perms: Mapping[ir.Value, Perm], constants: Constants
) -> Commuted | None:
    """The same axes under their old numbers."""
    axes = opset.reduction_axes(node, constants)
    if not axes:
        return None
    old_axes = sorted(perm[axis] for axis in axes)
    result = perm
    if not opset.keeps_dims(node):
        kept = [axis for axis in perm if axis not in old_axes]
        order = sorted(kept)
        result = tuple(order.index(axis) for axis in kept)
    as_attribute = "axes" in node.attributes

    def build(b: Builder, operands: Operands) -> ir.Value:
        plain = {name: a for name, a in node.attributes.items() if name != "axes"}
        if as_attribute:
            attributes = [*plain.values(), ir.AttrInt64s("axes", old_axes)]
            return b.add(ir.Node("", node.op_type, operands[:1], attributes))[0]
        inputs = [operands[0], b.const_i64(old_axes)]
        return b.add(ir.Node("", node.op_type, inputs, list(plain.values())))[0]

    return Commuted(result, build)


def _along_axis(default: int | None) -> _Handler:
    """Operators that work along one axis and keep the layout."""

    def handle(
        node: ir.Node, perm: Perm, perms: Mapping[ir.Value, Perm], constants: Constants
    ) -> Commuted | None:
        given = node.attributes.get("axis")
        axis = given.as_int() if given is not None else default
        if axis is None or not -len(perm) <= axis < len(perm):
            return None
        if any(value is not None and value not in perms for value in node.inputs):
            return None
        others = [a for name, a in node.attributes.items() if name != "axis"]
        attributes = [*others, ir.AttrInt64("axis", perm[axis])]

        def build(b: Builder, operands: Operands) -> ir.Value:
            return b.add(ir.Node("", node.op_type, operands, attributes))[0]

        return Commuted(perm, build)

    return handle


_Handler: TypeAlias = Callable[
    [ir.Node, Perm, Mapping[ir.Value, Perm], Constants], "Commuted | None"
]

_HANDLERS: dict[str, _Handler] = {
    **dict.fromkeys(opset.REDUCTIONS, _reduction),
    "Softmax": _along_axis(-1),
    "LogSoftmax": _along_axis(-1),
    "Concat": _along_axis(None),
}


def inverse(perm: Perm) -> Perm:
    """The permutation that undoes ``perm``."""
    result = [0] * len(perm)
    for index, axis in enumerate(perm):
        result[axis] = index
    return tuple(result)
