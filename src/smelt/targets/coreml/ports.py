"""Declare and describe the inputs, outputs and states of a function.

Core ML's interfaces have no scalars, bools or small integers. So an input is converted to its ONNX
type at the begin of the function, and an output from it at the end.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import tensor_of
from smelt.mlpackage.interface import ArrayElement, Color, Feature, Image, Interface, MultiArray
from smelt.mlpackage.program import Element, Named, StateType, TensorType
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.facts import Facts
from smelt.targets.coreml.interface import Sizes, feature, interface_element, multi_array
from smelt.targets.coreml.options import ImageOption, Options, refused
from smelt.targets.coreml.writer import Val, Writer

CHANNELS = {Color.GRAYSCALE: 1, Color.RGB: 3, Color.BGR: 3}


@dataclass
class Ports:
    """The inputs, outputs and states of one function.

    ``names`` maps input values to their names in the package; ``output_names`` are in the order of
    ``outputs``. ``states`` maps the input that is a state to the output that replaces it.
    """

    facts: Facts
    graph: ir.Graph
    options: Options
    sizes: Sizes
    inputs: list[ir.Value] = field(init=False)
    outputs: list[ir.Value] = field(init=False)
    names: dict[ir.Value, str] = field(init=False)
    output_names: list[str] = field(init=False)
    states: dict[ir.Value, ir.Value] = field(init=False)
    interface: Interface = field(init=False)

    def __post_init__(self) -> None:
        """Find the ports, and reserve their names; raises UsageError E660 for unknown names."""
        given = [value for value in self.graph.inputs if tensor_of(value) is None]
        self.states = self._states(given)
        self.inputs = given
        self.outputs = [v for v in self.graph.outputs if v not in self.states.values()]
        writer = self.facts.writer
        self.names = {value: writer.new_name(value.name or "input") for value in given}
        for value in self.states:
            writer.new_name(f"{self.names[value]}_out")  # what readers call the written state
        self.output_names = [writer.new_name(self._output_name(value)) for value in self.outputs]
        known = {value.name for value in given}
        for name in self.options.image_options:
            if name not in known:
                raise refused(f"images={self.options.images!r}", f"no input is called {name!r}")

    def _output_name(self, value: ir.Value) -> str:
        """Return the ONNX name of an output; an output that is also an input gets another name."""
        return f"{value.name}_output" if value in self.names else value.name or "output"

    def _states(self, inputs: list[ir.Value]) -> dict[ir.Value, ir.Value]:
        """Return the states that the options name, each an input and the output that replaces it.

        Raises UsageError E660 unless both are floats of one fixed shape.
        """
        by_name = {value.name: value for value in inputs}
        results = {value.name: value for value in self.graph.outputs}
        found: dict[ir.Value, ir.Value] = {}
        for before, after in self.options.state_names.items():
            what = f"states={self.options.states!r}"
            for name, known, kind in ((before, by_name, "input"), (after, results, "output")):
                if name not in known:
                    raise refused(what, f"no {kind} is called {name!r}")
            value, result = by_name[before], results[after]
            shapes = [Call(self.facts, _port(each.name)).dims(each) for each in (value, result)]
            if shapes[0] != shapes[1] or None in shapes[0]:
                why = f"{before!r} and {after!r} need one fixed shape; a state keeps its shape"
                raise refused(what, why, "write into a cache of fixed size, and bind its dims")
            if value.dtype is None or not value.dtype.is_floating_point():
                raise refused(what, f"{before!r} holds no floats; states of Core ML are float16")
            found[value] = result
        return found

    def declare(self) -> list[Named]:
        """Declare the inputs and states, and return them as parameters of the function."""
        features, states, parameters = [], [], []
        images = self.options.image_options
        for value in self.inputs:
            name = self.names[value]
            if value in self.states:
                states.append(self._described_state(value))
                parameters.append(self._state(value))
                continue
            element = interface_element(value.dtype, self.options)
            array = multi_array(value, element, self.sizes, flexible=True)
            described = feature(name, value, array)
            if value.name in images:
                element = Element.FLOAT32
                image = _image(value, array, images[value.name])
                described = Feature(name, image, described.description)
            features.append(described)
            parameters.append(self._parameter(value, element, images.get(value.name or "")))
        self.interface = Interface(features, [], states)
        return parameters

    def _parameter(self, value: ir.Value, element: Element, image: ImageOption | None) -> Named:
        """Declare an input and convert it; return it as a parameter of the function.

        A scalar is a vector of one element in the interface, a bool an int32. The pixels of an
        image are multiplied by the scale, and the bias is added.
        """
        call = Call(self.facts, _port(value.name))
        name, dims = self.names[value], call.dims(value)
        given = Val(name, element, dims or (1,))
        parameter = Named(name, TensorType(element, given.dims))
        if not dims:
            given = call.squeeze(given, [0])
        if value.dtype == ir.DataType.BOOL:
            given = call.cast(given, Element.BOOL)
        if image is not None:
            if image.scale != 1:
                given = call.op("mul", given, image.scale)
            if any(image.bias):
                bias = np.asarray(image.bias, np.float32).reshape(-1, 1, 1)
                given = call.op("add", given, bias)
        self.facts.scope.add(value, given)
        return parameter

    def _state(self, value: ir.Value) -> Named:
        """Declare a state, write the operation that reads it, and return it as a parameter."""
        name, dims = self.names[value], Call(self.facts, _port(value.name)).dims(value)
        state = Val(name, Element.FLOAT16, dims)
        read = self.facts.writer.op(
            "read_state", Element.FLOAT16, dims, name=f"{name}_read", input=state
        )
        self.facts.scope.add(value, read)
        return Named(name, StateType(TensorType(Element.FLOAT16, dims)))

    def _described_state(self, value: ir.Value) -> Feature:
        """Return the description of a state: its name, shape and type."""
        dims = self.sizes.at(value, {})
        return feature(self.names[value], value, MultiArray(ArrayElement.FLOAT16, dims))

    def finish(self) -> list[str]:
        """Write the states, convert the outputs, describe them, and return their names."""
        described, results = [], []
        for value, result in self.states.items():
            data = self._result(result, Element.FLOAT16)
            state = Val(self.names[value], Element.FLOAT16, data.dims)
            self.facts.writer.ops("write_state", [], input=state, data=data)
        for value, name in zip(self.outputs, self.output_names, strict=True):
            element = interface_element(value.dtype, self.options)
            results.append((self._result(value, element), name))
            array = multi_array(value, element, self.sizes, flexible=False)
            described.append(feature(name, value, array))
        _name_results(self.facts.writer, results, set(self.names.values()))
        self.interface = replace(self.interface, outputs=described)
        return self.output_names

    def _result(self, value: ir.Value, element: Element) -> Val:
        """Return an output in the type ``element`` of the interface; a scalar becomes a vector."""
        call = Call(self.facts, value.producer() or _port(value.name))
        result = call.read(value, element)
        return result if result.dims else call.expand(result, [0])

    def onnx_names(self) -> dict[str, str]:
        """Return the names of the package by those of the ONNX model."""
        found = {value.name or "": name for value, name in self.names.items()}
        pairs = zip(self.outputs, self.output_names, strict=True)
        return found | {value.name or "": name for value, name in pairs}


def _port(name: str | None) -> ir.Node:
    """Return a node called ``name``, because a ``Call`` names its operations after a node."""
    return ir.Node("", "Port", [], outputs=[ir.Value(name=name)])


def _image(value: ir.Value, array: MultiArray, option: ImageOption) -> Image:
    """Return the image type of an input; raises UsageError E660 unless it is [1,
    channels, H, W].
    """
    color = Color[option.color]
    shape = array.shape
    if len(shape) != 4 or shape[0] != 1 or shape[1] != CHANNELS[color]:
        why = f"{value.name!r} has the shape {list(shape)}, not [1, {CHANNELS[color]}, H, W]"
        raise refused(f"images={value.name}:{option.color}", why)
    if len(option.bias) not in (1, CHANNELS[color]):
        why = f"it has {len(option.bias)} biases for {CHANNELS[color]} channels"
        raise refused(f"images={value.name}:{option.color}", why)
    ranges = (array.ranges[3], array.ranges[2]) if array.ranges else ()
    listed = tuple((each[3], each[2]) for each in array.enumerated)
    return Image(shape[3], shape[2], color, ranges, listed)


def _name_results(writer: Writer, outputs: list[tuple[Val, str]], inputs: set[str]) -> None:
    """Rename each value in ``outputs`` to the name of its output.

    A value that is also an input, a constant or another output keeps its name; an ``identity``
    copies it to the output.
    """
    constants = {each.outputs[0].name for each in writer.constants}
    renamed: dict[str, str] = {}
    for value, name in outputs:
        if value.name in inputs or value.name in constants or value.name in renamed:
            source = renamed.get(value.name, value.name)
            kind = TensorType(value.element, value.dims)
            writer.ops("identity", [(value.element, value.dims)], name=name, x=value)
            made = writer.operations[-1]
            named = [Named(name, kind)]
            writer.operations[-1] = replace(made, inputs={"x": [source]}, outputs=named)
        else:
            renamed[value.name] = name
    if any(old != new for old, new in renamed.items()):
        writer.rename(renamed)
