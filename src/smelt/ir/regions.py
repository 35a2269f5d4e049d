"""Regions of a graph whose nodes are rewritten together or not at all.

A pass visits a graph once and grows them: a node begins a region, or joins the regions of its
operands. Then the pass weighs each region and replaces it as a whole. Regions are the sets of a
union-find with path compression, so growing them takes nearly linear time.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir import scope


@dataclass
class Region:
    """``nodes`` are replaced; ``sources`` begin the region and stay if they have other readers.

    Both are in graph order.
    """

    sources: list[ir.Node] = field(default_factory=list)
    nodes: dict[ir.Node, None] = field(default_factory=dict)

    def is_among(self, nodes: Collection[ir.Node]) -> bool:
        """True if a node of the region, or a source, is one of ``nodes``."""
        return any(node in nodes for node in (*self.sources, *self.nodes))

    def readers_outside(self, value: ir.Value) -> Iterator[ir.Node]:
        """Yield the readers of ``value`` that are not replaced."""
        return (reader for reader in scope.consumers(value) if reader not in self.nodes)

    def inputs_of_sources(self) -> dict[ir.Value, ir.Value | None]:
        """Return a map from the result of each source to the first input of that source.

        A pass that moves an operator out of the region reads the input in place of the result.
        """
        return {node.outputs[0]: node.inputs[0] for node in self.sources}


class Regions:
    """The growing regions of one graph; nodes are added in graph order."""

    def __init__(self) -> None:
        """Begin without regions; ``_parent`` leads from each node to the root of its region."""
        self._parent: dict[ir.Node, ir.Node] = {}
        self._sources: set[ir.Node] = set()

    def begin(self, source: ir.Node) -> None:
        """Begin a region with ``source``."""
        self._parent[source] = source
        self._sources.add(source)

    def join(self, node: ir.Node, operands: Iterable[ir.Value]) -> None:
        """Add ``node``, and merge the regions of the producers of ``operands``."""
        self._parent[node] = node
        for operand in operands:
            producer = operand.producer()
            assert producer is not None
            self._parent[self._root(producer)] = self._root(node)

    def with_nodes(self) -> list[Region]:
        """Return the regions that contain more than sources, ordered by their first node."""
        regions: dict[ir.Node, Region] = {}
        for node in self._parent:
            region = regions.setdefault(self._root(node), Region())
            if node in self._sources:
                region.sources.append(node)
            else:
                region.nodes[node] = None
        return [region for region in regions.values() if region.nodes]

    def _root(self, node: ir.Node) -> ir.Node:
        """Return the representative of the region of ``node``; shorten the path to it on the
        way.
        """
        parent = self._parent
        while parent[node] is not node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node
