"""The functions of one model: equal bodies share one function, and names are numbered in order."""

from __future__ import annotations

from typing import TypeAlias

import onnx_ir as ir

from smelt.frontends.jax.functions.marks import Mark
from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.ir.fingerprint import fingerprint
from smelt.ir.inlining import inline
from smelt.ir.rewrite import Rewriter
from smelt.ir.shapes.inference import ShapeInference

Key: TypeAlias = tuple[str, str, str, bytes]


class Library:
    """Names the functions of one model. ``optional`` holds functions that may be inlined."""

    def __init__(self) -> None:
        """Begin without functions and names."""
        self.optional: set[ir.OperatorIdentifier] = set()
        self._functions: dict[Key, ir.Function] = {}
        self._taken: set[tuple[str, str]] = set()

    def shared(self, model: ir.Model, mark: Mark, graph: ir.Graph) -> ir.Function:
        """Return the function with the body ``graph``; add it to ``model`` if there is none yet."""
        key = (mark.domain, mark.name, mark.target, fingerprint(graph))
        function = self._functions.get(key)
        if function is None:
            function = ir.Function(mark.domain, self._name(mark), graph=graph, attributes=[])
            for used in (node.domain for inner in scope.graphs_below(graph) for node in inner):
                graph.opset_imports.setdefault(used, model.opset_imports[used])
            self._functions[key] = model.functions[function.identifier()] = function
        return function

    def _name(self, mark: Mark) -> str:
        """Return the name of the mark, with a number if the domain already has such a function."""
        name, count = mark.name, 1
        while (mark.domain, name) in self._taken:
            count += 1
            name = f"{mark.name}_{count}"
        self._taken.add((mark.domain, name))
        return name


def inline_called_once(model: ir.Model, library: Library, shapes: ShapeInference) -> None:
    """Inline every optional function that only one node calls."""
    single = _called_at_most_once(model) & library.optional
    calls = [node for node in scope.nodes(model) if node.op_identifier() in single]
    rewriter = Rewriter(model, shapes, Constants())
    for node in calls:
        body = model.functions.pop(node.op_identifier()).graph
        _constants_become_initializers(body)
        inline(rewriter, node, body, node.inputs, foreign=True)
    rewriter.flush()
    for domain in {node.domain for node in calls} - {domain for domain, *_ in model.functions}:
        for imports in (model.opset_imports, *(f.opset_imports for f in model.functions.values())):
            imports.pop(domain, None)


def _constants_become_initializers(body: ir.Graph) -> None:
    """Turn ``Constant`` nodes, which function bodies need, into initializers of the graph."""
    for node in list(body):
        if node.op_type == "Constant" and not node.domain:
            (value,) = node.outputs
            tensor = node.attributes["value"].as_tensor()
            body.remove(node)
            constant = ir.Value(
                name=value.name, type=value.type, shape=value.shape, const_value=tensor
            )
            value.replace_all_uses_with(constant, replace_graph_outputs=True)
            body.register_initializer(constant)


def _called_at_most_once(model: ir.Model) -> set[ir.OperatorIdentifier]:
    """Return the functions that at most one node of ``model`` calls."""
    counts: dict[ir.OperatorIdentifier, int] = dict.fromkeys(model.functions, 0)
    for node in scope.nodes(model):
        if node.op_identifier() in counts:
            counts[node.op_identifier()] += 1
    return {key for key, count in counts.items() if count < 2}
