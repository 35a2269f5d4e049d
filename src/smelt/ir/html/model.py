"""A model as HTML: its interface, and its graph as a picture or a table of operators."""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.html.markup import table, titled
from smelt.ir.html.picture import picture
from smelt.ir.text import operator, size_in_bytes, type_of

DRAWN = 60
"""Largest number of nodes, inputs and outputs that is drawn; larger graphs get a table."""

LISTED = 20
"""Maximum number of inputs, outputs and operators in a table."""

SCROLLED = '<div style="max-height:640px;overflow:auto">'


def model_html(model: ir.Model) -> str:
    """Return ``model`` as HTML without scripts: a picture up to ``DRAWN`` boxes, else a table."""
    graph = model.graph
    counts = Counter(operator(node) for node in scope.nodes(model))
    tensors = [
        value.const_value
        for inner in scope.graphs(model)
        for value in inner.initializers.values()
        if value.const_value is not None
    ]
    size = sum(size_in_bytes(tensor) for tensor in tensors)
    opsets = ", ".join(f"{name or 'ai.onnx'} {v}" for name, v in model.opset_imports.items())
    title = (
        f"{graph.name or 'model'}: {counts.total():,} nodes, "
        f"{sum(int(tensor.size) for tensor in tensors):,} parameters in {size:,} bytes, {opsets}"
    )
    if len(graph) and len(graph) + len(graph.inputs) + len(graph.outputs) <= DRAWN:
        return titled(title, SCROLLED, picture(graph), "</div>")
    ports = [("input", v.name, type_of(v)) for v in graph.inputs[:LISTED]]
    ports += [("output", v.name, type_of(v)) for v in graph.outputs[:LISTED]]
    rows: list[tuple[object, ...]] = list(counts.most_common(LISTED))
    others = len(counts) - len(rows)
    if others > 0:
        other_nodes = counts.total() - sum(count for _, count in counts.most_common(LISTED))
        rows.append((f"{others} other operators", other_nodes))
    return titled(title, table(ports), table(rows, ("operator", "nodes")) if rows else "")
