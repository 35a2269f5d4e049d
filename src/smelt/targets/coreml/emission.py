"""From a selected model to a MIL program: node by node, with all refusals together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from smelt.errors import ErrorList, SmeltError, Unsupported
from smelt.ir import scope
from smelt.ir.bounds import bounds_of
from smelt.ir.constants import tensor_of
from smelt.ir.known_forms import unknown_part
from smelt.ir.opset import opset_of
from smelt.mlpackage.program import (
    Block,
    Element,
    Function,
    Interface,
    Named,
    Operation,
    TensorType,
)
from smelt.program.legality import and_more
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.facts import Facts
from smelt.targets.coreml.interface import (
    Sizes,
    empty,
    feature,
    multi_array,
    outside_element,
    problems_of,
)
from smelt.targets.coreml.options import IOS, Options
from smelt.targets.coreml.registry import ROWS
from smelt.targets.coreml.writer import Refused, Val, Writer

NO_ROW = "no operation of Core ML computes it, and nothing replaces it"
FIX = "change the model, or choose another target: `smelt targets` lists them"


@dataclass
class Emission:
    """A function with its interface, and what the report tells of it.

    ``names`` maps ONNX names of inputs and outputs to those of the package. ``clamped`` maps
    constants that stood for infinity, and became the largest float16, to their readers.
    """

    function: Function
    interface: Interface
    names: dict[str, str] = field(default_factory=dict)
    clamped: dict[str, str] = field(default_factory=dict)


def emit_function(model: ir.Model, options: Options) -> Emission:
    """Return ``model`` as a function; raises an ErrorList of everything that Core ML lacks."""
    graph = model.graph
    bounds = bounds_of(graph)
    sizes = Sizes.of(bounds, options)
    facts = Facts(Writer(options.ios), options.precision == "fp16", options.kept, opset_of(model))
    facts.lower_bounds = {name: low for name, (low, _) in bounds.items()}
    inputs = [value for value in graph.inputs if tensor_of(value) is None]
    problems = problems_of(inputs, sizes, "input") + problems_of(graph.outputs, sizes, "output")
    if problems:
        raise ErrorList(problems)
    names = {value: facts.writer.new_name(value.name or "input") for value in inputs}
    wanted = [facts.writer.new_name(_output_name(value, names)) for value in graph.outputs]
    features, parameters = [], []
    for value in inputs:
        element = outside_element(value.dtype, options)
        features.append(
            feature(names[value], value, multi_array(value, element, sizes, flexible=True))
        )
        parameters.append(_parameter(facts, value, names[value], element))
    errors = write_nodes(facts, graph)
    if errors:
        raise ErrorList(errors)
    described, outputs = [], []
    for value, name in zip(graph.outputs, wanted, strict=True):
        element = outside_element(value.dtype, options)
        outputs.append((_result(facts, value, element), name))
        described.append(feature(name, value, multi_array(value, element, sizes, flexible=False)))
    _name_results(facts.writer, outputs, set(names.values()))
    opset = IOS[options.ios][0]
    body = Block([*facts.writer.constants, *facts.writer.operations], wanted)
    emission = Emission(Function(parameters, opset, {opset: body}), Interface(features, described))
    emission.names = {value.name or "": name for value, name in names.items()}
    emission.names |= {v.name or "": n for v, n in zip(graph.outputs, wanted, strict=True)}
    emission.clamped = facts.clamped
    return emission


def _output_name(value: ir.Value, names: dict[ir.Value, str]) -> str:
    """Return the wanted name of an output; an output that is an input has another name."""
    return f"{value.name}_output" if value in names else value.name or "output"


def _parameter(facts: Facts, value: ir.Value, name: str, element: Element) -> Named:
    """Declare an input; a scalar becomes a vector of one element."""
    call = Call(facts, ir.Node("", "Input", [], outputs=[ir.Value(name=name)]))
    dims = call.dims(value)
    given = Val(name, element, dims or (1,))
    parameter = Named(name, TensorType(element, given.dims))
    if not dims:
        given = call.squeeze(given, [0])
    if value.dtype == ir.DataType.BOOL:
        given = call.cast(given, Element.BOOL)
    facts.scope.add(value, given)
    return parameter


def _result(facts: Facts, value: ir.Value, element: Element) -> Val:
    """Return an output with the element type of the interface; a scalar as a vector."""
    call = Call(facts, value.producer() or ir.Node("", "Output", []))
    found = call.read(value, element)
    return found if found.dims else call.expand(found, [0])


def _name_results(writer: Writer, outputs: Sequence[tuple[Val, str]], inputs: set[str]) -> None:
    """Give the results the names of the interface; what is an input, a constant or another output
    goes through an identity."""
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
        writer.operations = [_renamed(each, renamed) for each in writer.operations]


def _renamed(operation: Operation, names: dict[str, str]) -> Operation:
    """Return ``operation`` with other names of some values."""
    inputs = {
        key: [names.get(each, each) if isinstance(each, str) else each for each in arguments]
        for key, arguments in operation.inputs.items()
    }
    outputs = [Named(names.get(each.name, each.name), each.type) for each in operation.outputs]
    blocks = [
        replace(
            block,
            operations=[_renamed(each, names) for each in block.operations],
            outputs=[names.get(each, each) for each in block.outputs],
        )
        for block in operation.blocks
    ]
    return replace(operation, inputs=inputs, outputs=outputs, blocks=blocks)


def write_nodes(facts: Facts, graph: ir.Graph) -> list[SmeltError]:
    """Write the nodes of ``graph``; return an error for each operator and reason against it."""
    refused: dict[tuple[str, str, str, str], list[ir.Node]] = {}
    for node in graph:
        if len(node.outputs) == 1 and tensor_of(node.outputs[0]) is not None:
            continue
        if not _can_be_read(facts, node):
            continue
        try:
            write_node(facts, node)
        except Refused as error:
            name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            refused.setdefault((error.code, name, error.why, error.fix), []).append(node)
    return [_error(*key, nodes) for key, nodes in refused.items()]


def _can_be_read(facts: Facts, node: ir.Node) -> bool:
    """True if every operand was written, or is constant."""
    operands: Iterable[ir.Value | None] = (*node.inputs, *scope.captures(node))
    return all(
        value is None
        or facts.scope.original(value) is not None
        or facts.constants.get(value, limit=None) is not None
        for value in operands
    )


def write_node(facts: Facts, node: ir.Node) -> None:
    """Write one node; raises Refused if Core ML lacks it."""
    row = None if node.domain else ROWS.get(node.op_type)
    if row is None:
        raise Refused(NO_ROW)
    unknown = unknown_part(node)
    if unknown:
        raise Refused(f"it has {unknown}, which its row does not know")
    row(Call(facts, node))


def _error(code: str, name: str, why: str, fix: str, nodes: list[ir.Node]) -> SmeltError:
    """Return the error of one operator and reason, with the first node."""
    at = f"node {nodes[0].name!r}{and_more(len(nodes))}"
    if "dimension of 0" in why or "dimension is 0" in why or "result is 0" in why:
        return empty(f"{at} ({name})", fix or FIX)
    what = f"target 'coreml' cannot write operator {name}"
    return Unsupported(code, what, at=at, why=why, fix=fix or FIX)
