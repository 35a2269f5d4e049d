"""The differences between two models: versions, interface, operators, weights, and text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from smelt.check.agreement import interface_changes
from smelt.check.changes import node_changes
from smelt.errors import SmeltError
from smelt.frontends.onnx import clone
from smelt.ir import scope, text
from smelt.ir.collector import paused_collector
from smelt.ir.listing import listing, node_text, with_checksums
from smelt.ir.shapes.inference import ShapeInference
from smelt.ir.unified_diff import unified_diff
from smelt.runtime.interface import interface_of


@dataclass(frozen=True)
class Weight:
    """An initializer: its name, its type such as ``float[4,4]``, and its size in bytes."""

    name: str
    type: str
    bytes: int


@dataclass
class Weights:
    """The differences between the initializers of two models, matched by name.

    ``changed`` lists those with another type or other elements. ``before`` and ``after`` are the
    number of initializers and their total bytes.
    """

    before: tuple[int, int]
    after: tuple[int, int]
    added: list[Weight] = field(default_factory=list)
    removed: list[Weight] = field(default_factory=list)
    changed: list[tuple[Weight, Weight]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


@dataclass
class ModelDiff:
    """The differences between ``before`` and ``after``; false if there are none.

    ``versions`` are the IR version and opsets that differ, None for a domain that is not imported.
    ``operators`` has the counts before and after of every operator. ``removed`` and ``added`` are
    nodes that only one model has; ``reordered`` is True if equal nodes come in another order.
    ``text`` is the unified diff of the listings, with inferred types.
    """

    versions: dict[str, tuple[int | None, int | None]]
    interface: list[str]
    operators: dict[str, tuple[int, int]]
    weights: Weights
    removed: list[str]
    added: list[str]
    text: list[str]
    reordered: bool = False

    def __bool__(self) -> bool:
        """True if the models differ in anything but text."""
        nodes = self.removed or self.added
        return bool(self.versions or self.interface or nodes or self.weights)

    def to_json(self) -> dict[str, Any]:
        """Return the difference as JSON data; ``operators`` has only the counts that changed."""
        counts = {name: after - before for name, (before, after) in self.operators.items()}
        weights = self.weights
        return {
            "versions": {name: list(pair) for name, pair in self.versions.items()},
            "interface": self.interface,
            "operators": {name: change for name, change in counts.items() if change},
            "operator_counts": {name: list(pair) for name, pair in self.operators.items()},
            "weights": {
                "count": [weights.before[0], weights.after[0]],
                "bytes": [weights.before[1], weights.after[1]],
                "added": [vars(weight) for weight in weights.added],
                "removed": [vars(weight) for weight in weights.removed],
                "changed": [[vars(old), vars(new)] for old, new in weights.changed],
            },
            "removed": self.removed,
            "added": self.added,
            "text": self.text,
            "reordered": self.reordered,
        }


@paused_collector()
def model_diff(before: ir.Model, after: ir.Model) -> ModelDiff:
    """Return the differences between two models; neither is changed."""
    removed, added = node_changes(before, after)
    counts = [Counter(map(text.operator, scope.nodes(model))) for model in (before, after)]
    names = sorted(counts[0].keys() | counts[1].keys())
    return ModelDiff(
        versions=_versions(before, after),
        interface=interface_changes(interface_of(before), interface_of(after)),
        operators={name: (counts[0][name], counts[1][name]) for name in names},
        weights=_weights(before, after),
        removed=removed,
        added=added,
        text=unified_diff(*with_checksums(listing(_typed(before)), listing(_typed(after)))),
        reordered=not (removed or added) and _order(before) != _order(after),
    )


def _order(model: ir.Model) -> list[str]:
    """Return the nodes as text, in graph order."""
    return [node_text(node) for node in scope.nodes(model)]


def _typed(model: ir.Model) -> ir.Model:
    """Return a copy with inferred types, so that a type that one model omits is no difference."""
    copy = clone(model)
    try:
        ShapeInference(copy).infer_model()
    except SmeltError:
        return model
    return copy


def _versions(before: ir.Model, after: ir.Model) -> dict[str, tuple[int | None, int | None]]:
    """Return the versions that differ, by name, as (before, after); None for one that is absent."""
    numbers_before, numbers_after = _numbers(before), _numbers(after)
    pairs = {
        name: (numbers_before.get(name), numbers_after.get(name))
        for name in numbers_before | numbers_after
    }
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def _numbers(model: ir.Model) -> dict[str, int]:
    """Return the IR version and the opset of each domain."""
    opsets = {f"opset {name}".strip(): number for name, number in model.opset_imports.items()}
    return {"IR version": model.ir_version, **opsets}


def _weights(before: ir.Model, after: ir.Model) -> Weights:
    """Compare the initializers of two models by name."""
    weights_before, weights_after = _initializers(before), _initializers(after)
    differences = Weights(_sizes(weights_before), _sizes(weights_after))
    differences.removed = [
        _weight(*item) for item in weights_before.items() if item[0] not in weights_after
    ]
    differences.added = [
        _weight(*item) for item in weights_after.items() if item[0] not in weights_before
    ]
    for name, tensor in weights_before.items():
        pair = _weight(name, tensor), _weight(name, weights_after.get(name, tensor))
        if pair[0] != pair[1] or text.checksum(tensor) != text.checksum(
            weights_after.get(name, tensor)
        ):
            differences.changed.append(pair)
    return differences


def _initializers(model: ir.Model) -> dict[str, ir.TensorProtocol]:
    """Return the weights by name; the name of a weight in an inner graph has the graph's number."""
    return {
        f"{name} (graph {index})" if index else name: value.const_value
        for index, graph in enumerate(scope.graphs(model))
        for name, value in graph.initializers.items()
        if value.const_value is not None
    }


def _sizes(tensors: Mapping[str, ir.TensorProtocol]) -> tuple[int, int]:
    """Return the number of tensors and their bytes."""
    return len(tensors), sum(text.size_in_bytes(tensor) for tensor in tensors.values())


def _weight(name: str, tensor: ir.TensorProtocol) -> Weight:
    """Return the description of a weight."""
    return Weight(name, text.tensor_type(tensor), text.size_in_bytes(tensor))
