"""Recognize elements of a sequence: a Gather, or a Slice or Split and a Squeeze, along one axis."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from smelt.ir import opset
from smelt.ir.constants import Constants
from smelt.ir.same_shape import same_dim
from smelt.ir.slices import cuts_of
from smelt.ir.walk import producer_of


@dataclass(frozen=True)
class Element:
    """Index ``index`` along ``axis`` of ``source``, without that axis."""

    source: ir.Value
    axis: int
    index: int


def element_of(value: ir.Value, constants: Constants, version: int) -> Element | None:
    """Return the element that ``value`` is; None if it is none, or if sizes are unknown."""
    node = producer_of(value, "Gather", "Squeeze", "Reshape")
    if node is None or node.inputs[0] is None:
        return None
    if node.op_type == "Gather":
        return _gathered(node, constants, version, rank=0)
    part = node.inputs[0]
    cut = producer_of(part, "Gather", "Slice", "Split")
    if cut is None:
        return None
    if cut.op_type == "Gather":
        element = _gathered(cut, constants, version, rank=1)
    elif cut.op_type == "Slice":
        element = _sliced(cut, constants)
    else:
        element = _split(cut, part, version)
    return element if element is not None and _drops_axis(part, value, element.axis) else None


def _element_at(source: ir.Value | None, axis: int, index: int) -> Element | None:
    """Return the Element at ``index`` of ``axis``; None if it is out of range or a size is
    unknown."""
    if source is None or source.shape is None:
        return None
    axis %= len(source.shape)
    size = source.shape[axis]
    if not isinstance(size, int) or not -size <= index < size:
        return None
    return Element(source, axis, index % size)


def _gathered(node: ir.Node, constants: Constants, version: int, rank: int) -> Element | None:
    """Return the element that a Gather with one constant index of ``rank`` takes, else None."""
    index = constants.get(node.inputs[1])
    if index is None or index.ndim != rank or index.size != 1:
        return None
    return _element_at(
        node.inputs[0], opset.attribute(node, "axis", version), int(index.reshape(()))
    )


def _sliced(node: ir.Node, constants: Constants) -> Element | None:
    """Return the element that a Slice of length 1 takes, else None."""
    cuts = cuts_of(node, constants)
    if cuts is None or len(cuts) != 1:
        return None
    ((axis, (start, _, step)),) = cuts.items()
    shape = node.outputs[0].shape
    if step != 1 or shape is None or shape[axis] != 1:
        return None
    return _element_at(node.inputs[0], axis, start)


def _split(node: ir.Node, part: ir.Value, version: int) -> Element | None:
    """Return the element that ``part`` of a Split into parts of length 1 is, else None."""
    axis = opset.attribute(node, "axis", version)
    shapes = [value.shape for value in node.outputs]
    if any(shape is None or shape[axis] != 1 for shape in shapes):
        return None
    return _element_at(node.inputs[0], axis, part.index() or 0)


def _drops_axis(part: ir.Value, value: ir.Value, axis: int) -> bool:
    """True if ``value`` is ``part`` without ``axis``, which a Squeeze or Reshape removed."""
    if part.shape is None or value.shape is None or len(value.shape) != len(part.shape) - 1:
        return False
    kept = [dim for at, dim in enumerate(part.shape.dims) if at != axis]
    return all(map(same_dim, kept, value.shape.dims))
