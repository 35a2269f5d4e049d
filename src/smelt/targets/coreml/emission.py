"""Write a model as a function of MIL, node by node; all nodes that Core ML lacks are reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.errors import ErrorList, SmeltError, Unsupported
from smelt.ir import scope
from smelt.ir.bounds import bounds_of
from smelt.ir.constants import tensor_of
from smelt.ir.known_forms import unknown_part
from smelt.ir.opset import opset_of
from smelt.mlpackage.interface import Interface
from smelt.mlpackage.program import Block, Function
from smelt.program.legality import and_more
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.exact_floats import exact_nodes
from smelt.targets.coreml.facts import Facts
from smelt.targets.coreml.interface import Sizes, problems_of
from smelt.targets.coreml.options import IOS, Options
from smelt.targets.coreml.ports import Ports
from smelt.targets.coreml.registry import ROWS
from smelt.targets.coreml.wide_integers import may_be_too_wide
from smelt.targets.coreml.writer import Refused, Writer
from smelt.targets.legality import empty_tensor

NO_ROW = "no operation of Core ML computes it, and nothing replaces it"
RANDOM = (
    *("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike"),
    *("RandomUniform", "RandomUniformLike"),
)
NOT_WRITTEN = {
    "NonMaxSuppression": "the data decide how many boxes it returns, and Core ML pads its own list",
    **dict.fromkeys(RANDOM, "Core ML does not say how it draws random numbers"),
}
"""Why some operators have no row."""
EXTENSIONS = frozenset({("smelt", "ConcatInterleave")})
"""The operators beyond ONNX that have rows."""
UNSIGNED_FIX = "cast to int32 where the numbers fit, or compute it outside of the model"
FIX = "change the model, or choose another target: `smelt targets` lists them"


@dataclass
class Emission:
    """A MIL function with its interface, and facts for report.json.

    ``names`` maps ONNX names of inputs and outputs to those of the package. ``clamped`` maps
    constants that float16 cannot hold, and that became its largest or least number, to the nodes
    that read them. ``may_overflow`` maps results that may exceed 32 bits to their operators.
    """

    function: Function
    interface: Interface
    names: dict[str, str] = field(default_factory=dict)
    clamped: dict[str, str] = field(default_factory=dict)
    may_overflow: dict[str, str] = field(default_factory=dict)


def emit_function(model: ir.Model, options: Options) -> Emission:
    """Return ``model`` as a MIL function; raises an ErrorList of all that Core ML
    cannot compute.
    """
    graph = model.graph
    bounds = bounds_of(graph)
    sizes = Sizes.of(bounds, options)
    facts = Facts(Writer(options.ios), options.precision == "fp16", options.kept, opset_of(model))
    facts.exact = exact_nodes(graph) if facts.half else frozenset()
    facts.compact = options.weights == "compact"
    facts.lower_bounds = {
        name: sizes.listed.get(name, (low,))[0] for name, (low, _) in bounds.items()
    }
    ports = Ports(facts, graph, options, sizes)
    problems = [
        *problems_of(ports.inputs, sizes, "input"),
        *problems_of(graph.outputs, sizes, "output"),
    ]
    if problems:
        raise ErrorList(problems)
    parameters = ports.declare()
    errors = write_nodes(facts, graph)
    if errors:
        raise ErrorList(errors)
    outputs = ports.finish()
    opset = IOS[options.ios][0]
    body = Block([*facts.writer.constants, *facts.writer.operations], outputs)
    function = Function(parameters, opset, {opset: body})
    names = ports.onnx_names()
    return Emission(function, ports.interface, names, facts.clamped, facts.may_overflow)


def write_nodes(facts: Facts, graph: ir.Graph) -> list[SmeltError]:
    """Write the nodes of ``graph``; return one error for each operator and reason of a refusal."""
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
    """True if every operand was written, or is constant.

    A node that reads a refused node is skipped, so that it adds no error of its own.
    """
    operands: Iterable[ir.Value | None] = (*node.inputs, *scope.captures(node))
    return all(
        value is None
        or facts.scope.original(value) is not None
        or facts.constants.get(value, limit=None) is not None
        for value in operands
    )


def write_node(facts: Facts, node: ir.Node) -> None:
    """Write one node, unless it is a part of one before; raises Refused if Core ML lacks it."""
    if node.outputs and facts.scope.original(node.outputs[0]) is not None:
        return
    is_known = not node.domain or (node.domain, node.op_type) in EXTENSIONS
    row = ROWS.get(node.op_type) if is_known else None
    if row is None:
        raise Refused(NOT_WRITTEN.get(node.op_type, NO_ROW))
    if computes_unsigned(node):
        raise Refused("it computes uint32, which Core ML lacks", UNSIGNED_FIX, "E402")
    unknown = unknown_part(node)
    if unknown:
        raise Refused(f"it has {unknown}, which its row does not know")
    if not facts.dry and may_be_too_wide(facts.narrow_bounds, node):
        facts.may_overflow[node.outputs[0].name or ""] = node.op_type
    row(Call(facts, node))


def computes_unsigned(node: ir.Node) -> bool:
    """True if ``node`` reads or returns uint32, but for a Cast from or to int32.

    Such Casts stand behind inputs and before outputs, which a package has as int32 with the same
    bits.
    """
    types = [value.dtype for value in (*node.inputs, *node.outputs) if value is not None]
    is_same_bits = node.op_type == "Cast" and set(types) == {ir.DataType.INT32, ir.DataType.UINT32}
    return ir.DataType.UINT32 in types and not is_same_bits


def _error(code: str, name: str, why: str, fix: str, nodes: list[ir.Node]) -> SmeltError:
    """Return the error for ``nodes`` of one operator, refused for one reason; it names the first.

    A size of 0 has the same error for all targets.
    """
    at = f"node {nodes[0].name!r}{and_more(len(nodes))}"
    if "dimension of 0" in why or "dimension is 0" in why or "result is 0" in why:
        return empty_tensor("coreml", f"{at} ({name})", fix)
    what = f"target 'coreml' cannot write operator {name}"
    return Unsupported(code, what, at=at, why=why, fix=fix or FIX)
