"""Lower a marked call to the call of an ONNX function, with the called jaxpr as its body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.frontends.jax import compat
from smelt.frontends.jax.constants import INTERNED
from smelt.frontends.jax.functions.captures import Captures, Inputs, Sizes, is_structure, stem
from smelt.frontends.jax.functions.marks import Mark
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.nodes import Shared
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.source_lines import Call
from smelt.ir import scope
from smelt.ir.build import Builder


@dataclass(frozen=True)
class Body:
    """A graph that reads only its inputs, and how one call uses it.

    ``argument_makers[i]()`` returns the value that the call passes for input i. ``results`` has one
    entry per result: an output of the graph, or, if the result is an unchanged input, the function
    that returns the value passed for this input.
    """

    graph: ir.Graph
    argument_makers: Sequence[Callable[[], ir.Value]]
    results: Sequence[ir.Value | Callable[[], ir.Value]]


def call(
    cx: Lowering, mark: Mark, closed: compat.ClosedJaxpr, operands: Sequence[Operand]
) -> list[Operand]:
    """Build the call of the ONNX function for ``mark`` and return its results.

    ``closed`` is the called jaxpr; ``operands`` are already broadcast.
    """
    body = _body(cx, mark, closed, operands)
    outputs: dict[ir.Value, ir.Value] = {}
    if body.graph.outputs:
        function = cx.shared.library.shared(cx.builder.model, mark, body.graph)
        if not mark.kept:
            cx.shared.library.optional.add(function.identifier())
        arguments = [make() for make in body.argument_makers]
        count = len(body.graph.outputs)
        values = cx.builder.ops(function.name, *arguments, outputs=count, domain=mark.domain)
        outputs = dict(zip(body.graph.outputs, values, strict=True))
    return [
        Operand(outputs[result] if isinstance(result, ir.Value) else result(), tuple(aval.shape))
        for result, aval in zip(body.results, cx.avals_out, strict=True)
    ]


def _body(
    cx: Lowering, mark: Mark, closed: compat.ClosedJaxpr, operands: Sequence[Operand]
) -> Body:
    """Lower ``closed`` into a graph of its own, and drop the inputs that it never reads."""
    jaxpr = closed.jaxpr
    graph = ir.Graph([], [], nodes=[], name=mark.name, opset_imports={"": cx.opset})
    inner, inputs = _lowering(cx, mark, graph)
    captured_count = len(operands) - len(mark.arguments)  # Captured operands come first.
    names = [*[""] * captured_count, *mark.arguments]
    formals = [
        _body_input(inner, inputs, operand, name)
        for operand, name in zip(operands, names, strict=True)
    ]
    returned = inner.run(jaxpr, closed.consts, formals)
    values = [
        inner.broadcast_operand(returned_operand, atom).value
        for returned_operand, atom in zip(returned, jaxpr.outvars, strict=True)
    ]
    results = [inputs.makers.get(value, value) for value in values]
    graph.outputs.extend(
        dict.fromkeys(result for result in results if isinstance(result, ir.Value))
    )
    _drop_dead(graph)
    inputs_read = [value for value in graph.inputs if not scope.is_dead(value)]
    graph.inputs[:] = inputs_read
    return Body(graph, [inputs.makers[value] for value in inputs_read], results)


def _lowering(cx: Lowering, mark: Mark, graph: ir.Graph) -> tuple[Lowering, Inputs]:
    """Return a Lowering into ``graph`` that shares only functions with the model around it."""
    builder = Builder(
        cx.builder.model, graph, cx.builder.shapes, origin=cx.builder.origin, in_function=True
    )
    inputs = Inputs(builder)
    shared = Shared(
        builder,
        Sizes(builder, inputs, cx.symbols),
        Captures(builder, inputs, cx.pool, cx.symbols),
        cx.shared.library,
    )
    inner = Lowering(builder, shared, Call((*cx.call.names, mark.name), cx.call.fixed))
    inner.equation = cx.equation
    return inner, inputs


def _body_input(inner: Lowering, inputs: Inputs, operand: Operand, name: str) -> Operand:
    """Return the body's input for ``operand``; a small integer array becomes a constant.

    ``name`` is empty for captured operands.
    """
    value = operand.value
    assert value.dtype is not None
    array = inner.pool.known.get(value, INTERNED)
    if array is not None and is_structure(array):
        return Operand(inner.constant(array), operand.shape)
    source_name = value.name if value.producer() is None else None
    shape = inner.symbols.shape(operand.shape)
    formal = inputs.new(name or stem(source_name or ""), value.dtype, shape, lambda: value)
    inner.symbols.bind(formal, operand.shape)
    return Operand(formal, operand.shape)


def _drop_dead(graph: ir.Graph) -> None:
    """Remove nodes that nothing reads, such as constants that a lowering only inspected."""
    for inner in scope.graphs_below(graph):
        for node in list(reversed(inner)):
            if all(scope.is_dead(value) for value in node.outputs):
                inner.remove(node, safe=True)
