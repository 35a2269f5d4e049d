"""Inline a subgraph of a node, or a body from elsewhere, in place of the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.names import values_of
from smelt.ir.node_inputs import set_input
from smelt.ir.rewrite import Rewriter
from smelt.ir.same_shape import conflicting_shapes


def inline(
    rewriter: Rewriter,
    node: ir.Node,
    body: ir.Graph,
    bindings: Sequence[ir.Value | None] = (),
    skip: int = 0,
    stacked: int = 0,
    rule: str = "",
    *,
    foreign: bool = False,
) -> None:
    """Replace ``node`` by the nodes of ``body``, whose inputs are bound to ``bindings``.

    A binding of None is an absent operand. The first ``skip`` outputs of the body are dropped, as
    the condition of a Loop; the others replace the outputs of ``node``. The last ``stacked`` of
    them get a new first dim of 1, as scan outputs of one iteration. ``foreign``: the body is not a
    subgraph of the model, so names in it are made unique. Raises Refused, and changes nothing, if a
    dtype or a shape would change.
    """
    bound = dict(zip(body.inputs, bindings, strict=True))
    unstacked = len(node.outputs) - stacked
    returned: list[ir.Value | None] = [
        bound.get(value, value) for value in body.outputs[skip : skip + unstacked]
    ]
    rewriter.check(node, [*returned, *node.outputs[unstacked:]], trust_shape=True)
    builder = rewriter.builder(node, [node], rule)
    if foreign:
        _rename_subgraph_values(builder, body)
    body_nodes = list(body)
    for inner in body_nodes:
        inner.name = None  # two graphs may name a node alike; the graph names a node without one
    outputs = _move_body(builder, body, bound)[skip:]
    if bound:
        for inner in body_nodes:
            rewriter.shapes.infer_node(inner)
    values: list[ir.Value | None] = [
        builder.op("Unsqueeze", value, builder.const_i64([0])) if index >= unstacked else value
        for index, value in enumerate(outputs)
    ]
    for old, new in zip(node.outputs, values, strict=True):
        # trust_shape: a declared shape that contradicts the inferred one is dropped.
        if new is not None and conflicting_shapes(old.shape, new.shape):
            old.shape = None
    rewriter.replace(node, values, trust_shape=True, rule=rule)
    rewriter.remove_dead(reversed(body_nodes))


def _move_body(
    builder: Builder, body: ir.Graph, bound: Mapping[ir.Value, ir.Value | None]
) -> list[ir.Value | None]:
    """Move the constants and nodes of ``body`` to the place of ``builder``, under free names.

    The inputs of the body are replaced by ``bound``. Returns the outputs of the body.
    """
    outputs = list(body.outputs)
    body.outputs.clear()
    for inner, outer in bound.items():
        for use in inner.uses():
            set_input(use.node, use.idx, outer)
    replacement = dict(bound)
    for name, value in list(body.initializers.items()):
        if value.is_graph_input() or value.const_value is None:
            continue
        del body.initializers[name]
        replacement[value] = constant = builder.tensor(value.const_value, name)
        for use in value.uses():
            set_input(use.node, use.idx, constant)
    nodes = list(body)
    body.remove(nodes)
    for node in nodes:
        for value in node.outputs:
            if value.name:
                value.name = builder.free_name(value.name)
    if builder.before is None:
        builder.graph.extend(nodes)
    else:
        builder.graph.insert_before(builder.before, nodes)
    return [replacement.get(value, value) for value in outputs]


def _rename_subgraph_values(builder: Builder, body: ir.Graph) -> None:
    """Give the values of all subgraphs of the foreign ``body`` names that are free in the model."""
    for graph in list(scope.graphs_below(body))[1:]:
        for value in values_of(graph):
            value.name = builder.free_name(value.name or "val")
