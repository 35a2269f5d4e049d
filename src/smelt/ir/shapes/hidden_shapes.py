"""Find the results whose shapes a runtime cannot infer when it loads a model, though smelt can.

A runtime infers shapes node by node. PyTorch's TorchScript exporter computes the target shape of a
Reshape with symbolic sizes by nodes. The runtime then knows no size of the result, nor of later
results, unless the model declares them, and skips fusions there. In a simplified graph those
fusions may fire, for better or worse.
"""

from __future__ import annotations

from collections.abc import Sequence, Set

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import is_constant
from smelt.ir.same_shape import static_shape

_ALL_INPUTS = frozenset({"ConstantOfShape", "NonMaxSuppression", "NonZero", "Range", "Unique"})
_BUT_THE_FIRST = frozenset(
    {
        *("CenterCropPad", "Compress", "Expand", "MaxUnpool", "OneHot", "Pad", "Reshape", "Resize"),
        *("Slice", "Split", "Squeeze", "Tile", "TopK", "Unsqueeze", "Upsample"),
    }
)
"""Operators whose result sizes depend on the contents of their inputs (the first input
excepted)."""

HIDING = _ALL_INPUTS | _BUT_THE_FIRST | scope.GRAPH_CARRIERS
"""A model with hidden shapes has at least one of these operators."""


def stated_shapes(graph: ir.Graph) -> frozenset[str]:
    """Return the names of the results of ``graph`` for which the model declares every dim."""
    return frozenset(
        value.name
        for node in graph
        for value in node.outputs
        if value.name and value.shape is not None and not value.shape.has_unknown_dim()
    )


def hidden_shapes(graph: ir.Graph, stated: Set[str]) -> frozenset[str]:
    """Return the names of the results of ``graph`` whose shapes a runtime does not know.

    ``stated`` are the results whose shapes the source model declares. ``fixed`` are values that the
    runtime computes when it loads the model. Subgraphs are not inspected, and outputs of nodes with
    subgraphs count as hidden.
    """
    if all(static_shape(value) is not None for value in graph.inputs):
        return frozenset()
    fixed: set[ir.Value] = set()
    hidden: set[ir.Value] = set()
    for node in graph:
        if node.op_type == "Constant" or _is_folded_at_load(node, fixed, hidden):
            fixed.update(node.outputs)
        elif _is_hidden(node, fixed, hidden):
            hidden.update(value for value in node.outputs if value.name not in stated)
    return frozenset(value.name for value in hidden if value.name)


def _is_folded_at_load(node: ir.Node, fixed: Set[ir.Value], hidden: Set[ir.Value]) -> bool:
    """True if a runtime folds ``node`` when it loads the model."""
    if node.op_type == "Shape":
        x = node.inputs[0]
        return x is not None and x not in hidden and static_shape(x) is not None
    return bool(node.inputs) and all(_is_fixed(value, fixed) for value in node.inputs)


def _is_fixed(value: ir.Value | None, fixed: Set[ir.Value]) -> bool:
    """True if ``value`` is absent, constant, or among ``fixed``."""
    return value is None or value in fixed or is_constant(value)


def _is_hidden(node: ir.Node, fixed: Set[ir.Value], hidden: Set[ir.Value]) -> bool:
    """True if a runtime cannot infer the sizes of the outputs of ``node``."""
    if node.op_type in scope.GRAPH_CARRIERS:
        return True
    values_that_decide: Sequence[ir.Value | None] = ()
    if node.op_type in _ALL_INPUTS:
        values_that_decide = node.inputs
    elif node.op_type in _BUT_THE_FIRST:
        values_that_decide = node.inputs[1:]
    if not all(_is_fixed(value, fixed) for value in values_that_decide):
        return True
    if node.op_type in ("Reshape", "Expand") and static_shape(node.outputs[0]) is not None:
        return False
    return any(value in hidden for value in node.inputs if value is not None)
