"""Reduction step: remove nodes; a result becomes an input, an equal-typed value or a constant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, get_args

import numpy as np
import onnx_ir as ir

from smelt.check.reduction.search import Search, sweep
from smelt.ir import scope
from smelt.ir.extraction import become_inputs, replace
from smelt.ir.same_shape import same_dim
from smelt.runtime.inputs import random_array

Way = Literal["inputs", "bypass", "bypass from the end", "constants"]
WAYS: tuple[Way, ...] = get_args(Way)

LARGEST_CONSTANT = 1 << 16
"""The largest constant, in elements, that may replace a result."""


def drop_nodes(search: Search) -> bool:
    """Remove nodes in groups, halves first; True if any were removed.

    At each group size the ways are tried one after another until one removes something. The first
    way alone finds nodes that are next to each other.
    """

    def try_range(way: Way, chosen: range) -> int:
        before = search.count()
        search.attempt(partial(remove_nodes, chosen=chosen, way=way))
        return before - search.count()

    tries = [partial(try_range, way) for way in WAYS]
    return sweep(search.count, tries)


def remove_nodes(model: ir.Model, chosen: Iterable[int], way: Way) -> bool:
    """Remove the nodes with the numbers ``chosen``, counted over all graphs, outer graphs first.

    A result that is still read becomes the first or last operand of equal type for ``bypass``, a
    constant for ``constants``, and otherwise an input. A node stays if a result has no type or its
    inner graph returns it. Results that only removed nodes read become outputs. Returns False if
    nothing changes, or nothing in this ``way``.
    """
    nodes = list(scope.nodes(model))
    inside = {id(graph) for graph in scope.graphs_below(model.graph)}
    removed = [nodes[i] for i in chosen if i < len(nodes) and id(nodes[i].graph) in inside]
    return _Removal(model, removed, way).run()


@dataclass
class _Removal:
    model: ir.Model
    removed: list[ir.Node]
    way: Way
    gone: set[ir.Node] = field(default_factory=set)

    def run(self) -> bool:
        """Remove the nodes; False if nothing changes, or nothing in this way."""
        main = self.model.graph
        self.gone = _with_inner(self.removed)
        read = _read(main, self.gone)
        dropped = [node for node in self.removed if self._can_go(node, read)]
        self.gone = _with_inner(dropped)
        replaced = sum(self._replace(node, read) for node in dropped)
        if not dropped or (self.way != "inputs" and not replaced):
            return False
        self._choose_outputs()
        read = {*_read(main, self.gone), *main.outputs}
        results = (value for node in dropped for value in node.outputs)
        become_inputs(self.model, [value for value in results if value in read])
        for node in dropped:
            if node.graph is not None and node.graph is not main:
                node.graph.remove(node)
        return True

    def _can_go(self, node: ir.Node, read: set[ir.Value]) -> bool:
        """True if every result that is read has a type and is returned by no inner graph."""
        inner = node.graph is not self.model.graph
        return all(
            isinstance(value.type, ir.TensorType) and not (inner and value.is_graph_output())
            for value in node.outputs
            if value in read
        )

    def _replace(self, node: ir.Node, read: set[ir.Value]) -> int:
        """Replace the results of ``node`` by other values; return how many were replaced."""
        count = 0
        for value in node.outputs:
            other = None
            if self.way in ("bypass", "bypass from the end"):
                order = node.inputs if self.way == "bypass" else reversed(node.inputs)
                other = next((v for v in order if v is not None and _alike(v, value)), None)
            elif self.way == "constants" and value in read:
                other = _constant(self.model, value)
            if other is not None:
                replace(self.model, value, other)
                count += 1
        return count

    def _choose_outputs(self) -> None:
        """Keep outputs of remaining nodes, and add remaining results that only removed
        nodes read.
        """
        main = self.model.graph
        kept = [value for value in main.outputs if value.producer() not in {None, *self.gone}]
        for node in main:
            if node in self.gone:
                continue
            for value in node.outputs:
                readers = scope.consumers(value)
                dangling = readers and all(reader in self.gone for reader in readers)
                if dangling and value.dtype is not None:
                    kept.append(value)
        main.outputs.clear()
        main.outputs.extend(dict.fromkeys(kept))


def _with_inner(nodes: Iterable[ir.Node]) -> set[ir.Node]:
    return {inner for node in nodes for inner in (node, *scope.nested_nodes(node))}


def _read(main: ir.Graph, gone: set[ir.Node]) -> set[ir.Value]:
    """Return the values that remaining nodes read and remaining inner graphs return."""
    found: set[ir.Value] = set()
    for graph in scope.graphs_below(main):
        for node in graph:
            if node in gone:
                continue
            found.update(value for value in node.inputs if value is not None)
            for inner in scope.subgraphs(node):
                found.update(inner.outputs)
    return found


def _alike(a: ir.Value, b: ir.Value) -> bool:
    """True if both values have one element type and provably equal shapes."""
    if a.dtype is None or a.dtype != b.dtype or a.shape is None or b.shape is None:
        return False
    if type(a.type) is not type(b.type) or len(a.shape) != len(b.shape):
        return False
    return all(same_dim(*pair) for pair in zip(a.shape, b.shape, strict=True))


def _constant(model: ir.Model, value: ir.Value) -> ir.Value | None:
    """Return an initializer with random numbers in the type of ``value``; None if
    its size is open.
    """
    if value.shape is None or value.dtype in (None, ir.DataType.STRING):
        return None
    dims = [dim for dim in value.shape.dims if isinstance(dim, int)]
    if len(dims) < len(value.shape) or int(np.prod(dims, dtype=object)) > LARGEST_CONSTANT:
        return None
    assert value.dtype is not None
    array = random_array(value.dtype, tuple(dims), np.random.default_rng(0))
    tensor = ir.Tensor(array, dtype=value.dtype)
    name = f"{value.name}.constant"
    taken = model.graph.initializers
    while name in taken:
        name += "_"
    constant = ir.Value(name=name, type=value.type, shape=value.shape, const_value=tensor)
    tensor.name = name
    model.graph.register_initializer(constant)
    return constant
