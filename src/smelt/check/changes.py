"""List the nodes that differ between two models, as text."""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.listing import node_text


def node_changes(before: ir.Model, after: ir.Model) -> tuple[list[str], list[str]]:
    """Return the nodes that only ``before`` has, and those that only ``after`` has, in
    graph order.
    """
    lines_before, lines_after = (
        [node_text(node) for node in scope.nodes(model)] for model in (before, after)
    )
    return _multiset_difference(lines_before, lines_after), _multiset_difference(
        lines_after, lines_before
    )


def _multiset_difference(texts: list[str], others: list[str]) -> list[str]:
    """Return ``texts`` without those in ``others``; a text that occurs n times goes n times."""
    remaining = Counter(others)
    difference = []
    for text in texts:
        if remaining[text]:
            remaining[text] -= 1
        else:
            difference.append(text)
    return difference
