"""Unique names of nodes, for messages, and of values, which ONNX requires to be unique."""

from __future__ import annotations

from collections.abc import Iterable

import onnx_ir as ir

from smelt.errors import InvalidModel
from smelt.ir import scope

_MEANINGLESS = ("const", "local", "val")
"""Stems without meaning: a name made from one always gets a number, as in ``val_3``."""
_META = "smelt.names"


class Names:
    """A set of taken names. The number per stem only grows, so n names of one stem take linear
    time."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = set(taken)
        self._counters: dict[str, int] = {}

    def free(self, stem: str) -> str:
        """Return ``stem``, or ``stem_N`` if that is taken, and mark the name as taken."""
        if stem in self.taken:
            return self.numbered(stem)
        self.taken.add(stem)
        return stem

    def numbered(self, stem: str) -> str:
        """Return a free ``stem_N`` and mark it as taken."""
        count = self._counters.get(stem, 0)
        while (name := f"{stem}_{count}") in self.taken:
            count += 1
        self._counters[stem] = count + 1
        self.taken.add(name)
        return name


def names_of(model: ir.Model) -> Names:
    """Return the names of all values of ``model``; collected once and cached."""
    return _cached_names(model.graph, scope.graphs(model))


def names_below(graph: ir.Graph) -> Names:
    """Return the names of all values of ``graph``, such as a function body; collected once and
    cached."""
    return _cached_names(graph, scope.graphs_below(graph))


def share_names(names: Names, graph: ir.Graph) -> None:
    """Add the names of ``graph`` to ``names`` and let ``graph`` take its new names from there."""
    graph.meta[_META] = names
    names.taken.update(value.name for value in values_of(graph) if value.name is not None)


def forget_names(model: ir.Model) -> None:
    """Drop the cached names, after values were renamed."""
    for graph in (model.graph, *(function.graph for function in model.functions.values())):
        graph.meta.pop(_META, None)


def _cached_names(owner: ir.Graph, graphs: Iterable[ir.Graph]) -> Names:
    """Return the names cached at ``owner``, collected from ``graphs`` the first time."""
    names: Names | None = owner.meta.get(_META)
    if names is None:
        value_names = (value.name for graph in graphs for value in values_of(graph))
        names = Names(name for name in value_names if name is not None)
        names.taken.update(_MEANINGLESS)
        owner.meta[_META] = names
    return names


def name_nodes(model: ir.Model) -> int:
    """Give every node a unique name; the first node of a name keeps it. Returns the number of
    renames."""
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
    """Rename values whose name is taken in their model or function; returns the number of renames.

    Each graph may have named its values independently, but ONNX forbids a value to hide one of an
    outer graph. Inputs and outputs of the model keep their names: raises InvalidModel E304 if two
    share one.
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
    """Return the names of ``interface``; raises InvalidModel E304 if two values share one."""
    taken: set[str] = set()
    for value in interface:
        if value.name in taken:
            raise InvalidModel(
                "E304",
                f"two inputs or outputs of the model are called {value.name!r}",
                why="callers tell them apart by name",
                fix="rename one of them",
            )
        if value.name:
            taken.add(value.name)
    return taken


def values_of(graph: ir.Graph) -> list[ir.Value]:
    """Return inputs, constants and results of ``graph`` itself (no subgraphs), each once."""
    results = (value for node in graph for value in node.outputs)
    return list(dict.fromkeys((*graph.inputs, *graph.initializers.values(), *results)))
