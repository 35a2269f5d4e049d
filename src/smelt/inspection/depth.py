"""Find the longest chains of dependent nodes in a graph."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope

CHAINS = 3
"""The most chains that are returned."""


def longest_chains(graph: ir.Graph) -> list[list[ir.Node]]:
    """Return the longest chain to each of the deepest outputs of ``graph``, longest first.

    A node with inner graphs counts as one. Takes linear time.
    """
    depth: dict[ir.Node, int] = {}
    previous: dict[ir.Node, ir.Node | None] = {}
    for node in graph:
        reads = (*node.inputs, *(scope.captures(node) if scope.carries_graphs(node) else ()))
        producers = [value.producer() for value in reads if value is not None]
        deepest = max((m for m in producers if m in depth), key=depth.__getitem__, default=None)
        previous[node] = deepest
        depth[node] = 1 + (depth[deepest] if deepest is not None else 0)
    ends = dict.fromkeys(value.producer() for value in graph.outputs)
    deepest_outputs = sorted((n for n in ends if n in depth), key=depth.__getitem__, reverse=True)[
        :CHAINS
    ]
    return [_chain(node, previous) for node in deepest_outputs]


def _chain(node: ir.Node | None, previous: dict[ir.Node, ir.Node | None]) -> list[ir.Node]:
    """Return the chain that ends at ``node``, first node first."""
    chain = []
    while node is not None:
        chain.append(node)
        node = previous[node]
    return chain[::-1]
