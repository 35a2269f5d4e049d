"""Cut a graph down: make values inputs, and drop nodes that no output needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.names import forget_names, names_of, values_of
from smelt.ir.node_inputs import detach
from smelt.ir.symbolic_dims.empty_dims import forget_never_empty


def named_values(graph: ir.Graph) -> dict[str, ir.Value]:
    """Return the inputs, constants and results of ``graph`` itself (no subgraphs) by name."""
    return {value.name: value for value in values_of(graph) if value.name}


def become_inputs(model: ir.Model, values: Iterable[ir.Value]) -> None:
    """Make each of ``values`` of the main graph an input, appended to the existing inputs.

    Readers, outputs and inner graphs use the new input, which keeps name and type. The producer may
    stay for other results, under another name. Every value needs a type. The new inputs may be
    empty, even if the inputs of the source never are.
    """
    renamed = False
    for value in values:
        if value.is_graph_input():
            continue
        new_input = ir.Value(name=value.name, type=value.type, shape=value.shape)
        replace(model, value, new_input)
        if value.is_initializer() and value.name is not None:
            del model.graph.initializers[value.name]
        else:
            value.name = names_of(model).free(f"{value.name}.computed")
            renamed = True
            forget_never_empty(model)
        model.graph.inputs.append(new_input)
    if renamed:
        forget_names(model)


def replace(model: ir.Model, old: ir.Value, new: ir.Value) -> None:
    """Let every reader and graph output of ``old``, a value of the main graph, use ``new``."""
    for use in list(old.uses()):
        use.node.replace_input_with(use.idx, new)
    if old.is_graph_output():
        for graph in scope.graphs_below(model.graph):
            for index, output in enumerate(graph.outputs):
                if output is old:
                    graph.outputs[index] = new


def keep_needed(model: ir.Model) -> None:
    """Drop the nodes of the main graph that no output needs, and unread constants and functions.

    Inputs stay, read or not. Nodes are dropped whole: no node loses an output.
    """
    needed = needed_nodes(model.graph.outputs)
    dropped = [node for node in model.graph if node not in needed]
    for node in dropped:
        for reader in (node, *scope.nested_nodes(node)):
            detach(reader)
            for inner in scope.subgraphs(reader):
                inner.outputs.clear()
    model.graph.remove(dropped)
    for graph in scope.graphs(model):
        for name, value in list(graph.initializers.items()):
            if scope.is_dead(value) and not value.is_graph_input():
                del graph.initializers[name]
    _keep_called(model)


def needed_nodes(outputs: Iterable[ir.Value]) -> set[ir.Node]:
    """Return the nodes that ``outputs`` depend on, also through captures of inner graphs."""
    needed: set[ir.Node] = set()
    pending = [value.producer() for value in outputs]
    while pending:
        node = pending.pop()
        if node is None or node in needed:
            continue
        needed.add(node)
        read = (*node.inputs, *(() if scope.is_flat(node) else scope.captures(node)))
        pending += [value.producer() for value in read if value is not None]
    return needed


def needed_inputs(graph: ir.Graph) -> list[ir.Value]:
    """Return the inputs of ``graph`` that its outputs depend on, in order."""
    read = set(graph.outputs)
    for node in needed_nodes(graph.outputs):
        read.update(value for value in node.inputs if value is not None)
        if not scope.is_flat(node):
            read.update(scope.captures(node))
    return [value for value in graph.inputs if value in read]


def _keep_called(model: ir.Model) -> None:
    """Drop the functions of ``model`` that no node calls, directly or through other functions."""
    called: set[ir.OperatorIdentifier] = set()
    pending: list[ir.Graph] = [model.graph]
    functions: Mapping[ir.OperatorIdentifier, ir.Function] = model.functions
    while pending:
        for graph in scope.graphs_below(pending.pop()):
            for node in graph:
                key = node.op_identifier()
                if key in functions and key not in called:
                    called.add(key)
                    pending.append(functions[key].graph)
    for key in [key for key in functions if key not in called]:
        del model.functions[key]
