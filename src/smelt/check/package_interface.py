"""Give the model of a Core ML package the interface of the model that it is compared with.

Core ML has fewer element types than ONNX, and its own rules for names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

import onnx_ir as ir

from smelt.frontends.coreml.detect import is_core_ml
from smelt.ir.build import Builder
from smelt.ir.shapes.inference import ShapeInference
from smelt.runtime.interface import Interface, Port, interface_of
from smelt.runtime.runner import as_model
from smelt.targets.base import Artifact

if TYPE_CHECKING:
    from smelt.check.comparison_side import Checkable


def with_one_interface(a: Checkable, b: Checkable) -> tuple[Checkable, Checkable]:
    """Return both sides; if one is a Core ML package, as a model with the interface of the other.

    Only a side that is a model, a file or an artifact has an interface here.
    """
    if is_core_ml(a) == is_core_ml(b):
        return a, b
    package, other = (a, b) if is_core_ml(a) else (b, a)
    if isinstance(other, Artifact):
        interface = interface_of(other.model)
    elif isinstance(other, ir.Model | bytes) or (
        isinstance(other, str | Path) and Path(other).is_file()
    ):
        interface = interface_of(as_model(cast("ir.Model", other)))
    else:
        return a, b
    model = adapted(as_model(cast("ir.Model", package)).clone(), interface)
    return (model, b) if package is a else (a, model)


def adapted(model: ir.Model, interface: Interface) -> ir.Model:
    """Return ``model``, the model of a package, with the ports of ``interface``; changed in place.

    A package has int32 in place of other integers and of bools, and tensors of one element in place
    of scalars. Its names have letters, digits and underscores only, with a number where two would
    be equal. If more than this differs, the model keeps its own ports.
    """
    graph = model.graph
    sides = ((list(graph.inputs), interface.inputs), (list(graph.outputs), interface.outputs))
    if any(len(values) != len(ports) for values, ports in sides):
        return model
    pairs = [pair for values, ports in sides for pair in zip(values, ports, strict=True)]
    if not all(_stands_for(value, port) for value, port in pairs):
        return model
    _convert_inputs(model, interface.inputs)
    _convert_outputs(model, interface.outputs)
    return model


def _convert_inputs(model: ir.Model, ports: Sequence[Port]) -> None:
    """Give ``model`` inputs like ``ports``; nodes convert them to the inputs that it had."""
    graph = model.graph
    build = Builder(model, graph, ShapeInference(model), before=next(iter(graph), None))
    for index, port in enumerate(ports):
        inside = graph.inputs[index]
        if _is_equal(inside, port):
            continue
        uses = [(use.node, use.idx) for use in inside.uses()]
        kind = ir.TensorType(port.dtype or ir.DataType.INT32)
        shape = ir.Shape([]) if port.shape == () else inside.shape
        outside = ir.Value(name=port.name, type=kind, shape=shape)
        if inside.name == port.name:
            inside.name = build.free_name(f"{port.name}_of_the_package")
        graph.inputs[index] = outside
        value = build.cast(outside, inside.dtype or ir.DataType.INT32)
        if port.shape == ():
            value = build.op("Reshape", value, build.const_i64([1]))
        for node, position in uses:
            node.replace_input_with(position, value)
        for at, output in enumerate(graph.outputs):
            if output is inside:
                graph.outputs[at] = value


def _convert_outputs(model: ir.Model, ports: Sequence[Port]) -> None:
    """Give ``model`` outputs like ``ports``; nodes convert the outputs that it had to them."""
    graph = model.graph
    build = Builder(model, graph, ShapeInference(model))
    for index, port in enumerate(ports):
        inside = graph.outputs[index]
        if _is_equal(inside, port):
            continue
        if inside.name == port.name:
            inside.name = build.free_name(f"{port.name}_of_the_package")
        value = build.cast(inside, port.dtype or ir.DataType.INT32)
        if port.shape == ():
            value = build.op("Reshape", value, build.const_i64([]))
        value = build.op("Identity", value) if value is inside else value
        value.name = port.name
        graph.outputs[index] = value


def _is_equal(value: ir.Value, port: Port) -> bool:
    """True if ``value`` has the name, element type and rank of ``port``."""
    same_rank = port.shape != () or (value.shape is not None and len(value.shape) == 0)
    return value.name == port.name and value.dtype == port.dtype and same_rank


def _stands_for(value: ir.Value, port: Port) -> bool:
    """True if a package would write ``port`` as ``value``: with this name and element type."""
    if port.kind != "tensor" or port.dtype is None or value.dtype is None:
        return False
    is_integer = port.dtype.is_integer() or port.dtype is ir.DataType.BOOL
    same_type = value.dtype == (ir.DataType.INT32 if is_integer else port.dtype)
    plain = re.escape(re.sub(r"\W", "_", port.name, flags=re.ASCII))
    renamed = re.fullmatch(rf"_?{plain}(_output)?(_\d*)?", value.name or "")
    return same_type and (renamed is not None or port.name == value.name)
