"""Read the interface of a Core ML function: its inputs, and the bounds and images it describes."""

from __future__ import annotations

from collections.abc import Mapping

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.frontends.coreml.lowering import tensor_type
from smelt.frontends.coreml.types import onnx_type
from smelt.ir.bounds import Bounds, note_bounds
from smelt.mlpackage.interface import Image, Interface, MultiArray
from smelt.mlpackage.program import Function

IMAGE = "smelt.image"
"""Metadata key of an input or output that is an image: its value is such as ``RGB 224x224``."""


def open_inputs(function: Function, interface: Interface | None) -> dict[str, ir.Value]:
    """Return a graph input for each input and state of ``function``, by name.

    An unknown size is called ``NAME_AXIS``. Raises InvalidModel E304 for two inputs of one name.
    """
    inputs: dict[str, ir.Value] = {}
    for named in function.inputs:
        kind = tensor_type(named.type)
        if named.name in inputs or not named.name:
            raise InvalidModel(
                "E304" if named.name else "E325",
                f"two inputs of a Core ML function are called {named.name!r}"
                if named.name
                else "an input of a Core ML function has no name",
                why="values are found by their names",
                fix="save the model again",
            )
        dims = None
        if kind.dims is not None:
            dims = [
                f"{named.name}_{axis}" if dim is None else dim for axis, dim in enumerate(kind.dims)
            ]
        inputs[named.name] = ir.Value(
            name=named.name,
            type=ir.TensorType(onnx_type(kind.element)),
            shape=None if dims is None else ir.Shape(dims),
        )
    return inputs


def note_sizes(model: ir.Model, function: Function, interface: Interface | None) -> None:
    """Note the bounds that the package describes for the open sizes of its inputs."""
    bounds: dict[str, Bounds] = {}
    arrays = _arrays(interface)
    for named in function.inputs:
        described = arrays.get(named.name)
        dims = tensor_type(named.type).dims or ()
        for axis, dim in enumerate(dims):
            ends = described and _ends(described, axis, len(dims))
            if dim is None and ends:
                bounds[f"{named.name}_{axis}"] = ends
    if bounds:
        note_bounds(model, bounds)


def _arrays(interface: Interface | None) -> Mapping[str, MultiArray | Image]:
    """Return the described type of each input that has one, by name."""
    if interface is None:
        return {}
    return {each.name: each.type for each in interface.inputs if each.type is not None}


def _ends(described: MultiArray | Image, axis: int, rank: int) -> Bounds | None:
    """Return the least and greatest size of ``axis`` of ``rank``.

    None if the package describes none, or no upper bound.
    """
    if isinstance(described, Image):
        if axis < rank - 2:
            return None
        chosen = rank - 1 - axis  # an image size is (width, height), the tensor (..., H, W)
        if described.ranges:
            low, high = described.ranges[chosen]
        elif described.enumerated:
            sizes = [size[chosen] for size in described.enumerated]
            low, high = min(sizes), max(sizes)
        else:
            return None
    elif len(described.ranges) == rank:
        low, high = described.ranges[axis]
    elif described.enumerated and all(len(shape) == rank for shape in described.enumerated):
        sizes = [shape[axis] for shape in described.enumerated]
        low, high = min(sizes), max(sizes)
    else:
        return None
    return (low, high) if 0 <= low <= high and high >= 1 else None


def describe_inputs(model: ir.Model, interface: Interface | None) -> None:
    """Record colour layout and size of images in the metadata of inputs and outputs."""
    if interface is None:
        return
    described = {each.name: each.type for each in (*interface.inputs, *interface.outputs)}
    for value in (*model.graph.inputs, *model.graph.outputs):
        image = described.get(value.name or "")
        if isinstance(image, Image):
            text = f"{image.color.name} {image.width}x{image.height}"
            value.metadata_props[IMAGE] = text
