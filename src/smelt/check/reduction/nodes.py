"""Reduction step: remove nodes and replace their results by inputs, operands or constants."""

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

Replacement = Literal["inputs", "bypass", "bypass from the end", "constants"]
"""What replaces a result of a removed node that is still read: a new model input, the first or the
last operand of equal type, or a constant.
"""

REPLACEMENTS: tuple[Replacement, ...] = get_args(Replacement)

LARGEST_CONSTANT = 1 << 16
"""The largest constant, in elements, that may replace a result."""


def drop_nodes(search: Search) -> bool:
    """Remove nodes in groups, halves first; True if any were removed.

    At each group size the kinds of replacement are tried in order until one removes something. The
    first kind suffices if the nodes that the check needs are adjacent.
    """

    def try_range(replacement: Replacement, chosen: range) -> int:
        """Try to remove the nodes with the numbers ``chosen``; return how many nodes were
        removed.
        """
        before = search.count()
        search.attempt(partial(remove_nodes, chosen=chosen, replacement=replacement))
        return before - search.count()

    tries = [partial(try_range, replacement) for replacement in REPLACEMENTS]
    return sweep(search.count, tries)


def remove_nodes(model: ir.Model, chosen: Iterable[int], replacement: Replacement) -> bool:
    """Remove the nodes with the numbers ``chosen``, counted over all graphs, outer graphs first.

    A result that is still read becomes its node's first operand of equal type for ``bypass``, the
    last for ``bypass from the end``, a random constant for ``constants``, and otherwise a model
    input. A node stays if such a result has no type or is the output of an inner graph. Results
    that only removed nodes read become outputs. Returns False if no node was removed, or none of
    the results was replaced where ``replacement`` is not ``inputs``.
    """
    nodes = list(scope.nodes(model))
    inside = {id(graph) for graph in scope.graphs_below(model.graph)}
    removed = [nodes[i] for i in chosen if i < len(nodes) and id(nodes[i].graph) in inside]
    return _Removal(model, removed, replacement).run()


@dataclass
class _Removal:
    """Removes the nodes ``removed`` from ``model``; ``gone`` has them and the nodes of their inner
    graphs.
    """

    model: ir.Model
    removed: list[ir.Node]
    replacement: Replacement
    gone: set[ir.Node] = field(default_factory=set)

    def run(self) -> bool:
        """Remove the nodes; False if none can go, or if no result was replaced as
        ``replacement`` requests.
        """
        main = self.model.graph
        self.gone = _with_inner(self.removed)
        read_values = _read(main, self.gone)
        removable = [node for node in self.removed if self._can_go(node, read_values)]
        self.gone = _with_inner(removable)
        replaced = sum(self._replace(node, read_values) for node in removable)
        if not removable or (self.replacement != "inputs" and not replaced):
            return False
        self._choose_outputs()
        read_values = {*_read(main, self.gone), *main.outputs}
        results = (value for node in removable for value in node.outputs)
        become_inputs(self.model, [value for value in results if value in read_values])
        for node in removable:
            if node.graph is not None and node.graph is not main:
                node.graph.remove(node)
        return True

    def _can_go(self, node: ir.Node, read_values: set[ir.Value]) -> bool:
        """True if every result that is read has a tensor type and is not the output of an inner
        graph.
        """
        is_inside = node.graph is not self.model.graph
        return all(
            isinstance(value.type, ir.TensorType) and not (is_inside and value.is_graph_output())
            for value in node.outputs
            if value in read_values
        )

    def _replace(self, node: ir.Node, read_values: set[ir.Value]) -> int:
        """Replace the results of ``node`` by other values; return how many were replaced."""
        count = 0
        for value in node.outputs:
            substitute = None
            if self.replacement in ("bypass", "bypass from the end"):
                operands = node.inputs if self.replacement == "bypass" else reversed(node.inputs)
                substitute = next(
                    (v for v in operands if v is not None and _have_equal_types(v, value)), None
                )
            elif self.replacement == "constants" and value in read_values:
                substitute = _constant(self.model, value)
            if substitute is not None:
                replace(self.model, value, substitute)
                count += 1
        return count

    def _choose_outputs(self) -> None:
        """Set the outputs: those that remaining nodes compute, and results that only removed nodes
        read.
        """
        main = self.model.graph
        kept_outputs = [
            value for value in main.outputs if value.producer() not in {None, *self.gone}
        ]
        for node in main:
            if node in self.gone:
                continue
            for value in node.outputs:
                readers = scope.consumers(value)
                is_dangling = readers and all(reader in self.gone for reader in readers)
                if is_dangling and value.dtype is not None:
                    kept_outputs.append(value)
        main.outputs.clear()
        main.outputs.extend(dict.fromkeys(kept_outputs))


def _with_inner(nodes: Iterable[ir.Node]) -> set[ir.Node]:
    """Return ``nodes`` and the nodes of their inner graphs."""
    return {inner for node in nodes for inner in (node, *scope.nested_nodes(node))}


def _read(main: ir.Graph, gone: set[ir.Node]) -> set[ir.Value]:
    """Return the values that remaining nodes read and that their inner graphs return."""
    values: set[ir.Value] = set()
    for graph in scope.graphs_below(main):
        for node in graph:
            if node in gone:
                continue
            values.update(value for value in node.inputs if value is not None)
            for inner in scope.subgraphs(node):
                values.update(inner.outputs)
    return values


def _have_equal_types(a: ir.Value, b: ir.Value) -> bool:
    """True if both values have the same element type and provably equal shapes."""
    if a.dtype is None or a.dtype != b.dtype or a.shape is None or b.shape is None:
        return False
    if type(a.type) is not type(b.type) or len(a.shape) != len(b.shape):
        return False
    return all(same_dim(*pair) for pair in zip(a.shape, b.shape, strict=True))


def _constant(model: ir.Model, value: ir.Value) -> ir.Value | None:
    """Return a new initializer of random numbers with the type of ``value``.

    Returns None for strings, for symbolic dims, and beyond ``LARGEST_CONSTANT`` elements.
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
    initializers = model.graph.initializers
    while name in initializers:
        name += "_"
    constant = ir.Value(name=name, type=value.type, shape=value.shape, const_value=tensor)
    tensor.name = name
    model.graph.register_initializer(constant)
    return constant
