"""Store equal weights once: by their contents, in a graph and all graphs inside of it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.tensors.equal_tensors import EqualTensors

SMALL = 256
"""Smaller weights, in bytes, stay in their branch.

They are axes, shapes and scalars, which runtimes look for next to the node that reads them.
"""


def share_weights(model: ir.Model) -> None:
    """Move the weights of inner graphs to the main graph, and keep one copy of equal weights.

    Weights of fewer than ``SMALL`` bytes, and weights that an inner graph returns, stay in their
    graph.
    """
    first_of_equal: dict[Hashable, ir.Value] = {}
    equal = EqualTensors(tensor for _, tensor in _large(model.graph))
    for value, tensor in list(_large(model.graph)):
        graph = value.graph
        if graph is None or value.name is None or value.is_graph_output():
            continue
        original = first_of_equal.setdefault(equal.key(tensor), value)
        if original is value:
            _move(value, graph, model.graph)
            continue
        for use in list(value.uses()):
            use.node.replace_input_with(use.idx, original)
        del graph.initializers[value.name]


def _large(graph: ir.Graph) -> Iterator[tuple[ir.Value, ir.TensorProtocol]]:
    """Yield the weights of at least ``SMALL`` bytes of ``graph`` and the graphs inside."""
    for inner in scope.graphs_below(graph):
        for value in inner.initializers.values():
            tensor = value.const_value
            if tensor is not None and tensor.dtype != ir.DataType.STRING and tensor.nbytes >= SMALL:
                yield value, tensor


def _move(value: ir.Value, graph: ir.Graph, outer: ir.Graph) -> None:
    """Move an initializer from ``graph`` to ``outer``, under a name that is free there."""
    if graph is outer:
        return
    name = str(value.name)
    del graph.initializers[name]
    count = 0
    while value.name in outer.initializers:
        value.name = f"{name}_{count}"
        count += 1
    outer.register_initializer(value)
