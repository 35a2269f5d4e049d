"""Write extension operators into a model as ONNX functions, so that any runtime loads it.

A body depends on attributes, element types and ranks, so each combination that a model uses gets
a function of its own: the first keeps the operator's name, later ones are ``Name_2``, ``Name_3``...
ONNX has overloads for this, but a runtime that ignores them computes the wrong function without
a word; the reference evaluator of onnx 1.23 does. ``restore_operators`` undoes it all on loading.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.shapes import ShapeInference
from smelt.operators.declare import Operator
from smelt.operators.registry import find

MARK = "smelt.operator"
"""The metadata of a function that stands for the operator it names."""

Instance: TypeAlias = tuple[object, ...]


def attach_functions(model: ir.Model) -> tuple[ir.Node, ...]:
    """Add a function for each extension operator in use, and let the nodes call them.

    Returns the nodes whose operator ONNX cannot express; those no other runtime can load. Values
    must have known dtypes and ranks. Repeating it changes nothing.
    """
    restore_operators(model)
    functions: dict[Instance, ir.Function | None] = {}
    counts: dict[tuple[str, str], int] = {}
    bare: list[ir.Node] = []
    for node in list(scope.nodes(model)):
        operator = find(node.domain, node.op_type) if node.domain else None
        if operator is None or node.op_identifier() in model.functions:
            continue
        instance = _instance(operator, node)
        if instance not in functions:
            count = counts.get(operator.key, 0) + 1
            name = operator.name if count == 1 else f"{operator.name}_{count}"
            function = _function(model, operator, node, name)
            functions[instance] = function
            if function is not None:
                counts[operator.key] = count
        found = functions[instance]
        if found is None:
            bare.append(node)
        else:
            node.op_type = found.name
    for added in functions.values():
        if added is not None:
            model.functions[added.identifier()] = added
    return tuple(bare)


def restore_operators(model: ir.Model) -> int:
    """Turn calls of attached functions back into operators, and drop the functions.

    Only functions marked by ``attach_functions`` whose operator is registered here are touched.
    Returns the number of functions dropped.
    """
    names: dict[ir.OperatorIdentifier, str] = {}
    for identifier, function in model.functions.items():
        name = function.metadata_props.get(MARK, "")
        plain = re.fullmatch(rf"{re.escape(name)}(_\d+)?", function.name) if name else None
        if plain and not function.overload and find(function.domain, name) is not None:
            names[identifier] = name
    if not names:
        return 0
    for identifier in names:
        del model.functions[identifier]
    for node in scope.nodes(model):
        name = names.get(node.op_identifier(), "")
        if name:
            node.op_type = name
    return len(names)


def _instance(operator: Operator, node: ir.Node) -> Instance:
    """What a body may depend on."""
    attributes = tuple(operator.attributes_of(node).items())
    types = tuple(
        None if v is None else (v.dtype, None if v.shape is None else len(v.shape))
        for v in node.inputs
    )
    return operator.key, attributes, types, len(node.outputs)


def _function(model: ir.Model, operator: Operator, node: ir.Node, name: str) -> ir.Function | None:
    """The body as a function of inputs with the dtypes and ranks of ``node``, sizes unknown."""
    if operator.body is None:
        return None
    inputs = [_formal(operator, i, value) for i, value in enumerate(node.inputs)]
    given = [value for value in inputs if value is not None]
    graph = ir.Graph(given, [], nodes=[], opset_imports={"": model.opset_imports.get("", 1)})
    builder = Builder(model, graph, ShapeInference(model), in_function=True)
    results = operator.body(builder, inputs, operator.attributes_of(node))
    if results is None:
        return None
    for result in results:
        # A body may hand back an input or one value twice; a function's outputs are its own.
        taken = result in graph.outputs or result.producer() is None
        graph.outputs.append(builder.op("Identity", result) if taken else result)
    _name_values(graph)
    for used in graph:
        if used.domain:
            graph.opset_imports[used.domain] = model.opset_imports[used.domain]
    # The values of this instance as defaults, so that a node may spell them out or leave them out.
    values = operator.attributes_of(node)
    attributes = [
        ir.Attr(attribute.name, attribute.type, values[attribute.name])
        for attribute in operator.attributes
        if values[attribute.name] is not None
    ]
    function = ir.Function(operator.domain, name, graph=graph, attributes=attributes)
    function.metadata_props[MARK] = operator.name
    return function


def _formal(operator: Operator, index: int, value: ir.Value | None) -> ir.Value | None:
    if value is None:
        return None
    names = operator.inputs
    name = names[index].rstrip("?") if index < len(names) else f"{names[-1]}{index}"
    shape = None if value.shape is None else ir.Shape([None] * len(value.shape))
    dtype = value.dtype
    return ir.Value(name=name, type=None if dtype is None else ir.TensorType(dtype), shape=shape)


def _name_values(graph: ir.Graph) -> None:
    for i, node in enumerate(graph):
        node.name = f"n{i}"
        for j, value in enumerate(node.outputs):
            value.name = f"t{i}_{j}"
