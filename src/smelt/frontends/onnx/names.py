"""Names: of nodes, so that all can be pointed at, and of values, which ONNX wants all different."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope


def name_nodes(model: ir.Model) -> None:
    """Give every node a unique name; a name that only one node has stays as it is."""
    taken: set[str] = set()
    unnamed: list[ir.Node] = []
    for node in scope.nodes(model):
        if node.name and node.name not in taken:
            taken.add(node.name)
        else:
            unnamed.append(node)
    counters: dict[str, int] = {}
    for node in unnamed:
        stem = node.name or node.op_type
        count = counters.get(stem, 0)
        while (name := f"{stem}_{count}") in taken:
            count += 1
        counters[stem] = count + 1
        taken.add(name)
        node.name = name


def name_inner_values(model: ir.Model) -> None:
    """Rename values of subgraphs that are called like another value of their model or function.

    Each graph names its new values by itself, and ONNX lets no value hide one of an outer graph.
    """
    for root in (model.graph, *(function.graph for function in model.functions.values())):
        taken: set[str] = set()
        counters: dict[str, int] = {}
        for graph in scope.graphs_below(root):
            for value in _values(graph):
                if value.name in taken and graph is not root:
                    value.name = _free(value.name or "", taken, counters)
                if value.name:
                    taken.add(value.name)


def _values(graph: ir.Graph) -> list[ir.Value]:
    results = [value for node in graph for value in node.outputs]
    return [*graph.inputs, *graph.initializers.values(), *results]


def _free(stem: str, taken: set[str], counters: dict[str, int]) -> str:
    """``stem`` with a number that makes it new; numbers only grow, so this is linear."""
    count = counters.get(stem, 0)
    while (name := f"{stem}_{count}") in taken:
        count += 1
    counters[stem] = count + 1
    return name
