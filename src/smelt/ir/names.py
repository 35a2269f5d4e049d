"""Names: of nodes, so that all can be pointed at, and of values, which ONNX wants all different."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir import scope
from smelt.ir.build import forget_names


def name_nodes(model: ir.Model) -> int:
    """Give every node a unique name; the first of a name keeps it. Returns how many are new."""
    taken: set[str] = set()
    unnamed: list[ir.Node] = []
    for node in scope.nodes(model):
        if node.name and node.name not in taken:
            taken.add(node.name)
        else:
            unnamed.append(node)
    counters: dict[str, int] = {}
    for node in unnamed:
        node.name = free_name(node.name or node.op_type, taken, counters)
    return len(unnamed)


def name_values(model: ir.Model) -> int:
    """Rename values that are called like another of their model or function; returns how many.

    Each graph names its new values by itself, and ONNX lets no value hide one of an outer graph.
    Inputs and outputs of the model keep their names: raises InvalidModel E304 if two share one.
    """
    renamed = 0
    interface = dict.fromkeys((*model.graph.inputs, *model.graph.outputs))
    for root in (model.graph, *(function.graph for function in model.functions.values())):
        fixed = interface if root is model.graph else {}
        taken = _names(fixed)
        counters: dict[str, int] = {}
        for graph in scope.graphs_below(root):
            for value in values_of(graph):
                if value in fixed or value.name == "":  # An output that is left out.
                    continue
                if value.name is None or value.name in taken:
                    value.name = free_name(value.name or "val", taken, counters)
                    renamed += 1
                taken.add(value.name)
    if renamed:
        forget_names(model)
    return renamed


def free_name(stem: str, taken: set[str], counters: dict[str, int]) -> str:
    """``stem`` with a number that makes it new, added to ``taken``; numbers only grow, so many
    names of one stem cost linear time."""
    count = counters.get(stem, 0)
    while (name := f"{stem}_{count}") in taken:
        count += 1
    counters[stem] = count + 1
    taken.add(name)
    return name


def _names(interface: Iterable[ir.Value]) -> set[str]:
    taken: set[str] = set()
    for value in interface:
        if value.name in taken:
            raise InvalidModel(
                "E304",
                f"two inputs or outputs of the model are called {value.name!r}",
                why="callers tell them apart by name",
            )
        if value.name:
            taken.add(value.name)
    return taken


def values_of(graph: ir.Graph) -> list[ir.Value]:
    """Inputs, constants and results of ``graph`` itself, each once."""
    results = (value for node in graph for value in node.outputs)
    return list(dict.fromkeys((*graph.inputs, *graph.initializers.values(), *results)))
