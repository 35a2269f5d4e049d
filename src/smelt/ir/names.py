"""Names: of nodes, so that all can be pointed at, and of values, which ONNX wants all different."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir import scope

_MADE_UP = ("const", "local", "val")
"""Stems of names that say nothing: they always have a number."""
_META = "smelt.names"


class Names:
    """Names that are taken. The numbers of a stem only grow, so many names of one stem cost
    linear time."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._counters: dict[str, int] = {}

    def free(self, stem: str) -> str:
        """``stem``, or ``stem_N`` if that is taken; it is taken from now on."""
        if stem in self.taken:
            return self.numbered(stem)
        self.taken.add(stem)
        return stem

    def numbered(self, stem: str) -> str:
        """``stem_N`` that is not taken yet."""
        count = self._counters.get(stem, 0)
        while (name := f"{stem}_{count}") in self.taken:
            count += 1
        self._counters[stem] = count + 1
        self.taken.add(name)
        return name


def names_of(model: ir.Model) -> Names:
    """The names of all values of ``model``, looked up once."""
    return _looked_up(model.graph, scope.graphs(model))


def names_below(graph: ir.Graph) -> Names:
    """The names of all values of ``graph``, such as the body of a function, looked up once."""
    return _looked_up(graph, scope.graphs_below(graph))


def share_names(names: Names, graph: ir.Graph) -> None:
    """Let ``graph``, which comes into one that has ``names``, take its names from them, too."""
    graph.meta[_META] = names
    names.taken.update(value.name for value in values_of(graph) if value.name is not None)


def forget_names(model: ir.Model) -> None:
    """Look up again which names are taken, after values were renamed."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        graph.meta.pop(_META, None)


def _looked_up(owner: ir.Graph, graphs: Iterable[ir.Graph]) -> Names:
    names: Names | None = owner.meta.get(_META)
    if names is None:
        every = (value.name for graph in graphs for value in values_of(graph))
        names = Names(name for name in every if name is not None)
        names.taken.update(_MADE_UP)
        owner.meta[_META] = names
    return names


def name_nodes(model: ir.Model) -> int:
    """Give every node a unique name; the first of a name keeps it. Returns how many are new."""
    names = Names()
    unnamed: list[ir.Node] = []
    for node in scope.nodes(model):
        if node.name and node.name not in names.taken:
            names.taken.add(node.name)
        else:
            unnamed.append(node)
    for node in unnamed:
        node.name = names.numbered(node.name or node.op_type)
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
        names = Names(_interface_names(fixed))
        for graph in scope.graphs_below(root):
            for value in values_of(graph):
                if value in fixed or value.name == "":  # An output that is left out.
                    continue
                if value.name is None or value.name in names.taken:
                    value.name = names.numbered(value.name or "val")
                    renamed += 1
                names.taken.add(value.name)
    if renamed:
        forget_names(model)
    return renamed


def _interface_names(interface: Iterable[ir.Value]) -> set[str]:
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
