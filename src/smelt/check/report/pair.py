"""Match the nodes of two models that no pipeline connects."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from smelt.check.report.graph import graph_of
from smelt.check.report.modules import path_of
from smelt.check.report.places import Places
from smelt.errors import SmeltError
from smelt.ir import scope, text
from smelt.ir.listing import node_text
from smelt.ir.shapes.inference import ShapeInference


def pair_of(before: ir.Model, after: ir.Model) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return both graphs as data, in which matched nodes are linked by number.

    Two nodes match if their printed lines are equal, else if name and operator are equal; the
    latter are ``changed`` if their attributes differ. Other nodes are ``gone`` or ``new``.
    """
    before, after = _inferred(before), _inferred(after)
    nodes_before, nodes_after = list(scope.nodes(before)), list(scope.nodes(after))
    pairs = _pairs(nodes_before, nodes_after)
    first = graph_of(before)
    places = Places(first["tree"], [path_of(node) for node in nodes_before])
    groups = places.assign(
        {node: [pairs[index]] if index in pairs else [] for index, node in enumerate(nodes_after)}
    )
    sides = first, graph_of(after, place=groups.__getitem__)
    for index, node in enumerate(sides[1]["nodes"]):
        partner = pairs.get(index)
        if partner is None:
            node["state"] = "new"
            continue
        node["from"] = [partner]
        if text.attributes(nodes_before[partner].attributes) != text.attributes(
            nodes_after[index].attributes
        ):
            node["state"] = sides[0]["nodes"][partner]["state"] = "changed"
    reached = set(pairs.values())
    for index, node in enumerate(sides[0]["nodes"]):
        if index not in reached:
            node["state"] = "gone"
    return sides


def _inferred(model: ir.Model) -> ir.Model:
    """Return a copy with inferred types and shapes that shares the weights.

    Returns the model itself if inference fails.
    """
    copy = model.clone()
    try:
        shapes = ShapeInference(copy)
        shapes.infer_model()
        shapes.restore_interface()
    except SmeltError:
        return model
    return copy


def _pairs(old: list[ir.Node], new: list[ir.Node]) -> dict[int, int]:
    """Map the index of a new node to the index of the old node that it matches, if there is one.

    Nodes with equal text are matched first, then nodes with equal name and operator. Among several
    candidates, the first in graph order is used.
    """
    pairs: dict[int, int] = {}
    matched: set[int] = set()
    for key in (node_text, _name):
        unmatched: dict[str, list[int]] = {}
        for index, node in reversed(list(enumerate(old))):
            if index not in matched and key(node):
                unmatched.setdefault(key(node), []).append(index)
        for index, node in enumerate(new):
            if index not in pairs and (found := unmatched.get(key(node))):
                pairs[index] = found.pop()
                matched.add(pairs[index])
    return pairs


def _name(node: ir.Node) -> str:
    """Return domain, operator and name of ``node``; "" for a node without a name, which
    ``_pairs`` leaves out.
    """
    return f"{node.domain}.{node.op_type} {node.name}" if node.name else ""
