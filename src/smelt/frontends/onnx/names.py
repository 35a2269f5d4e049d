"""Node names: empty and repeated ones are legal in ONNX, but nobody can point at them."""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope


def name_nodes(model: ir.Model) -> None:
    """Give every node a unique name; a name that only one node has stays as it is."""
    taken: set[str] = set()
    unnamed: list[ir.Node] = []
    for node in scope.nodes(model):
        if node.name and node.name not in taken:
            taken.add(node.name)
        else:
            unnamed.append(node)
    counters: dict[str, int] = {}
    for node in unnamed:
        stem = node.name or node.op_type
        count = counters.get(stem, 0)
        while (name := f"{stem}_{count}") in taken:
            count += 1
        counters[stem] = count + 1
        taken.add(name)
        node.name = name
