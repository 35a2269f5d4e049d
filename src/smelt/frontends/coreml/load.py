"""Read a package of Core ML as a Model of ONNX operators."""

from __future__ import annotations

from pathlib import Path

import onnx_ir as ir

from smelt.errors import ErrorList, InvalidModel, UsageError, did_you_mean
from smelt.frontends.coreml import (  # noqa: F401 - each registers its readers
    activations,
    classifier,
    control_flow,
    convolutions,
    elementwise,
    indexing,
    lists,
    movement,
    normalizations,
    pools,
    products,
    quantization,
    recurrent,
    reductions,
    resizing,
    shapes,
    slices,
    states,
    weights,
)
from smelt.frontends.coreml.detect import FROM_CORE_ML, split_function
from smelt.frontends.coreml.interface import describe_inputs, note_sizes, open_inputs
from smelt.frontends.coreml.lowering import Scope, Shared, reserve_names
from smelt.ir.build import Builder
from smelt.ir.opsets.versions import ir_version_of
from smelt.ir.shapes.inference import ShapeInference
from smelt.mlpackage.program import Constant, Function, Package, StateType
from smelt.mlpackage.read import read_package
from smelt.operators import register_all

OPSET = 23
"""The opset of the nodes that readers add."""


def read_core_ml(source: str | Path | bytes) -> ir.Model:
    """Return a function of a Core ML package, model file or bytes as a model of ONNX operators.

    ``package.mlpackage#function`` names the function; without a name, it is the package's default.
    A state is an input, and also an output ``NAME_out`` if the program writes it. An open size is
    called ``INPUT_AXIS`` and has the bounds of the package. Raises the errors of ``read_package``,
    InvalidModel E3xx for inconsistent programs, UsageError E123 for an unknown function, and an
    ErrorList of Unsupported E105, E120 and E121 with everything that cannot be read.
    """
    path, name = (source, "") if isinstance(source, bytes) else split_function(source)
    package = read_package(path)
    return model_of(package, name or package.default_function)


def model_of(package: Package, name: str) -> ir.Model:
    """Return the function ``name`` of ``package`` as a model; ``read_core_ml`` has the errors."""
    function = _function(package, name)
    register_all()
    graph = ir.Graph([], [], nodes=[], name=name)
    graph.opset_imports[""] = OPSET
    model = ir.Model(graph, ir_version=ir_version_of({"": OPSET}), producer_name="smelt")
    model.meta[FROM_CORE_ML] = True
    interface = package.interfaces.get(name)
    inputs = open_inputs(function, interface)
    graph.inputs.extend(inputs.values())
    builder = Builder(model, graph, ShapeInference(model))
    reserve_names(builder, function.body)
    shared = Shared(builder, function.opset, named=set(inputs))
    scope = Scope(builder, shared)
    for named in function.inputs:
        if isinstance(named.type, StateType):
            shared.states[named.name] = inputs[named.name]
        scope.define(named.name, inputs[named.name])
    results = scope.run(function.body)
    if shared.refusals:
        raise ErrorList(shared.refusals)
    outputs = list(zip(function.body.outputs, results, strict=True))
    outputs += [(f"{state}_out", shared.states[state]) for state in sorted(shared.written)]
    for output, known in outputs:
        _return(scope, output, known)
    describe_inputs(model, interface)
    note_sizes(model, function, interface)
    return model


def _function(package: Package, name: str) -> Function:
    """Return the function ``name``; raises UsageError E123 if there is none."""
    functions = package.program.functions
    if name in functions:
        return functions[name]
    if len(functions) == 1 and name == package.default_function:
        return next(iter(functions.values()))
    others = ", ".join(map(repr, functions)) or "none"
    raise UsageError(
        "E123",
        f"the package has no function {name!r}",
        why=f"its functions are {others}",
        fix=did_you_mean(name, functions, "name one of them: package.mlpackage#function"),
    )


def _return(scope: Scope, name: str, known: ir.Value | Constant) -> None:
    """Append an output ``name`` of the graph; raises InvalidModel E304 if it exists already.

    An output of the name of an input, which ONNX forbids, is called ``NAME_out``.
    """
    graph = scope.builder.graph
    while any(value.name == name for value in graph.inputs):
        name += "_out"
    if any(output.name == name for output in graph.outputs):
        raise InvalidModel(
            "E304",
            f"a Core ML function returns {name!r} twice",
            why="outputs are told apart by their names",
            fix="save the model again",
        )
    value = scope.as_value(known)
    if value.producer() is None or value.name != name:
        value = scope.builder.op("Identity", value)
        holder = graph_value(graph, name)
        if holder is not None:  # an inner value has the name of the output, and loses it
            holder.name = scope.builder.free_name(f"{name}_inner")
        value.name = name
    graph.outputs.append(value)


def graph_value(graph: ir.Graph, name: str) -> ir.Value | None:
    """Return the output ``name`` of a node of ``graph``; None if there is none."""
    for node in graph:
        for value in node.outputs:
            if value.name == name:
                return value
    return None
