"""Results whose shapes a runtime cannot tell before a run, though we can.

A runtime infers shapes node by node. Where one is computed, as PyTorch's TorchScript exporter
computes those of Reshapes of open sizes, it knows no size of the result, nor of what follows,
unless the model states it. What it then leaves as it is, it may fuse in a tidier graph, for better
or worse.
"""

from __future__ import annotations

from collections.abc import Set

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
"""Operators whose results have sizes that numbers in their inputs tell."""

HIDING = _ALL_INPUTS | _BUT_THE_FIRST | scope.GRAPH_CARRIERS
"""Operators of which a model has at least one if it hides a shape."""


def stated_shapes(graph: ir.Graph) -> frozenset[str]:
    """The names of the results that ``graph`` states every size of, as a number or by a name."""
    return frozenset(
        value.name
        for node in graph
        for value in node.outputs
        if value.name and value.shape is not None and not value.shape.has_unknown_dim()
    )


def hidden_shapes(graph: ir.Graph, stated: Set[str]) -> frozenset[str]:
    """The names of the results of ``graph`` whose shapes a runtime does not know.

    ``stated`` are those that the model states; all shapes are inferred since. Subgraphs are not
    looked into, and what they return is hidden.
    """
    if all(static_shape(value) is not None for value in graph.inputs):
        return frozenset()
    fixed: set[ir.Value] = set()
    hidden: set[ir.Value] = set()
    for node in graph:
        if node.op_type == "Constant" or _folds(node, fixed, hidden):
            fixed.update(node.outputs)
        elif _is_hidden(node, fixed, hidden):
            hidden.update(value for value in node.outputs if value.name not in stated)
    return frozenset(value.name for value in hidden if value.name)


def _folds(node: ir.Node, fixed: Set[ir.Value], hidden: Set[ir.Value]) -> bool:
    """True if a runtime computes ``node`` as it loads the model."""
    if node.op_type == "Shape":
        x = node.inputs[0]
        return x is not None and x not in hidden and static_shape(x) is not None
    return bool(node.inputs) and all(_is_fixed(value, fixed) for value in node.inputs)


def _is_fixed(value: ir.Value | None, fixed: Set[ir.Value]) -> bool:
    return value is None or value in fixed or is_constant(value)


def _is_hidden(node: ir.Node, fixed: Set[ir.Value], hidden: Set[ir.Value]) -> bool:
    """True if a runtime does not know the sizes of what ``node`` gives."""
    if node.op_type in scope.GRAPH_CARRIERS:
        return True
    first = 0 if node.op_type in _ALL_INPUTS else 1 if node.op_type in _BUT_THE_FIRST else None
    if first is not None and not all(_is_fixed(value, fixed) for value in node.inputs[first:]):
        return True
    if node.op_type in ("Reshape", "Expand") and static_shape(node.outputs[0]) is not None:
        return False
    return any(value in hidden for value in node.inputs if value is not None)
