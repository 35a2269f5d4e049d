"""Record what a pipeline does to a model: the graph before, the passes, and the state of
each node.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, NamedTuple

import onnx_ir as ir

from smelt.check.report.graph import graph_of
from smelt.check.report.modules import Path, path_of
from smelt.check.report.places import Places
from smelt.check.report.shown import shown
from smelt.ir import scope
from smelt.ir.provenance import META_KEY, Origin, number, numbers_of, origin_of
from smelt.passes.pipeline import Step
from smelt.passes.run import PassReport


class _First(NamedTuple):
    """A node as it was before the first pass."""

    number: int
    path: Path
    op_type: str
    attributes: tuple[ir.Attr, ...]


class History:
    """An observer that records a pipeline for the report.

    ``before`` is the graph before the first pass, as data; ``model`` the model that passes change
    in place; ``selection`` the text for nodes that were made after all passes.
    """

    def __init__(self) -> None:
        """Start before the first pass.

        ``removed_by`` and ``made_by`` name the pass that removed a node of the source, by number,
        or made a new one.
        """
        self.before: dict[str, Any] | None = None
        self.model: ir.Model | None = None
        self.runs: list[tuple[Step, PassReport]] = []
        self.selection = ""
        self.removed_by: dict[int, str] = {}
        self.made_by: dict[ir.Node, str] = {}
        self._first: dict[ir.Node, _First] = {}
        self._alive: dict[ir.Node, None] = {}

    def before_pass(self, step: Step, model: ir.Model) -> None:
        """Record the model before the first pass."""
        if self.before is None:
            self.begin(model)

    def begin(self, model: ir.Model) -> dict[str, Any]:
        """Return the graph of ``model`` as data, and number its nodes so that later nodes can be
        traced to them.
        """
        self.model = model
        self.before = before = graph_of(model, lambda node, index: _source(node))
        self._alive = dict.fromkeys(scope.nodes(model))
        for index, node in enumerate(self._alive):
            kept = tuple(node.attributes.values())
            self._first[node] = _First(index, path_of(node), node.op_type, kept)
        number(self._alive)
        return before

    def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
        """Record the report of the pass, and which nodes it removed and made."""
        self.runs.append((step, report))
        if not report.changed:
            return
        alive = dict.fromkeys(scope.nodes(model))
        for node in self._alive.keys() - alive.keys():
            if node in self._first:
                self.removed_by[self._first[node].number] = report.text
        for node in alive.keys() - self._alive.keys():
            self.made_by[node] = report.text
        self._alive = alive

    def graphs(self, model: ir.Model) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the graphs before and after; nodes have a ``state``: changed, new or gone, none
        if unchanged.

        A node before is changed if some node after came from it, and gone if none did.
        """
        before = self.before if self.before is not None else self.begin(model)
        nodes = list(scope.nodes(model))
        places = Places(before["tree"], [first.path for first in self._first.values()])
        groups = places.assign({node: self._sources(node) for node in nodes})
        after = graph_of(model, self._came_from, groups.__getitem__)
        reached: set[int] = set()
        kept: set[int] = set()
        for node in after["nodes"]:
            reached.update(node["from"])
            if "state" not in node:
                kept.update(node["from"])
        for index, node in enumerate(before["nodes"]):
            if index not in kept:
                node["state"] = "changed" if index in reached else "gone"
            if index in self.removed_by:
                node["pass"] = shown(self.removed_by[index])
        return before, after

    def _sources(self, node: ir.Node) -> Sequence[int]:
        """Return the numbers of the nodes before the first pass that ``node`` is, or was
        made from.
        """
        first = self._first.get(node)
        return (first.number,) if first is not None else numbers_of(node)

    def _came_from(self, node: ir.Node, index: int) -> dict[str, Any]:
        """Return the state of a node after the passes, its source nodes, and the pass
        that made it.
        """
        first = self._first.get(node)
        if first is not None:
            facts: dict[str, Any] = _source(node) | {"from": [first.number]}
            return facts if _is_unchanged(node, first) else facts | {"state": "changed"}
        origin = origin_of(node)
        facts = {"state": "new", "from": sorted(numbers_of(node)), **_source(node)}
        if origin.rules:
            facts["rules"] = [shown(rule, 80) for rule in origin.rules]
        maker = self.made_by.get(node, self.selection)
        return facts | {"pass": shown(maker)} if maker else facts


def _source(node: ir.Node) -> dict[str, Any]:
    """Return the source lines or source nodes that are recorded on ``node``.

    Returns an empty dict if they are only the node's own name.
    """
    recorded = node.meta.get(META_KEY)
    if not isinstance(recorded, Origin) or recorded.sources == (node.name,):
        return {}
    return {"source": [shown(source, 160) for source in recorded.sources]}


def _is_unchanged(node: ir.Node, first: _First) -> bool:
    """True if ``node`` still has the operator and the attributes that it had before the
    first pass.
    """
    attributes = tuple(node.attributes.values())
    are_same_attributes = len(attributes) == len(first.attributes) and all(
        map(is_, attributes, first.attributes)
    )
    return are_same_attributes and node.op_type == first.op_type
