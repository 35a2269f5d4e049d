"""The functions of one model: equal ones are one, and names are given in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import onnx_ir as ir

from smelt.frontends.jax.functions.marks import Mark
from smelt.ir import scope
from smelt.ir.fingerprint import fingerprint

Key: TypeAlias = tuple[str, str, str, bytes]


class Library:
    """Gives each body a name. ``inlined`` are equations, by id, that make no call.

    ``optional`` are those that may do without, and what they call.
    """

    def __init__(self, inlined: Iterable[int] = ()) -> None:
        self.inlined = frozenset(inlined)
        self.optional: dict[int, ir.OperatorIdentifier] = {}
        self._functions: dict[Key, ir.Function] = {}
        self._taken: set[tuple[str, str]] = set()

    def shared(self, model: ir.Model, mark: Mark, graph: ir.Graph) -> ir.Function:
        """The function that computes what ``graph`` does, made of it unless there is one."""
        key = (mark.domain, mark.name, mark.target, fingerprint(graph))
        known = self._functions.get(key)
        if known is None:
            known = ir.Function(mark.domain, self._name(mark), graph=graph, attributes=[])
            for used in (node.domain for inner in scope.graphs_below(graph) for node in inner):
                graph.opset_imports.setdefault(used, model.opset_imports[used])
            self._functions[key] = model.functions[known.identifier()] = known
        return known

    def _name(self, mark: Mark) -> str:
        name, count = mark.name, 1
        while (mark.domain, name) in self._taken:
            count += 1
            name = f"{mark.name}_{count}"
        self._taken.add((mark.domain, name))
        return name


def built(lower: Callable[[Library], ir.Model]) -> ir.Model:
    """What ``lower`` makes; once more if functions that may be inlined are called only once."""
    library = Library()
    model = lower(library)
    single = _called_once(model)
    inlined = [call for call, called in library.optional.items() if called in single]
    return lower(Library(inlined)) if inlined else model


def _called_once(model: ir.Model) -> set[ir.OperatorIdentifier]:
    """The functions of which ``model`` holds only one call."""
    counts: dict[ir.OperatorIdentifier, int] = dict.fromkeys(model.functions, 0)
    for node in scope.nodes(model):
        if node.op_identifier() in counts:
            counts[node.op_identifier()] += 1
    return {key for key, count in counts.items() if count < 2}
