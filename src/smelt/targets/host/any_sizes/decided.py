"""Find the nodes whose result sizes or ranks are data-dependent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import onnx_ir as ir

from smelt.errors import ErrorList, Unsupported
from smelt.ir import scope
from smelt.ir.partition import is_constant_node
from smelt.ir.shapes.state_types import is_tensor
from smelt.ir.symbolic_dims.dims import names_of
from smelt.passes.pipelines import EXPANDED_OPERATORS
from smelt.program.lower import lower_alone
from smelt.program.lower.registry import lowering_of
from smelt.program.specialize import unknown_sizes

_REDUCTIONS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

DECIDING: Mapping[str, Sequence[int]] = {
    **dict.fromkeys(("Reshape", "Expand", "Tile", "TopK", "Split", "Squeeze", "Unsqueeze"), (1,)),
    **dict.fromkeys((f"Reduce{name}" for name in _REDUCTIONS), (1,)),
    **dict.fromkeys(("ConstantOfShape", "HannWindow", "HammingWindow", "BlackmanWindow"), (0,)),
    **dict.fromkeys(("OneHot", "AffineGrid", "CenterCropPad", "Upsample", "Trilu"), (1,)),
    **dict.fromkeys(("CumSum", "CumProd", "Dropout"), (1,)),
    "Range": (0, 1, 2),
    "Slice": (1, 2, 3, 4),
    "Pad": (1, 3),
    "Resize": (1, 2, 3),
    "DFT": (1, 2),
    "STFT": (1, 3),
    "MelWeightMatrix": (0, 1, 2, 3, 4),
    "Col2Im": (1, 2),
    "MaxUnpool": (2,),
}
"""Operator to the inputs whose elements decide sizes, axes or positions."""


def decided_nodes(model: ir.Model) -> set[ir.Node]:
    """Return the nodes of the main graph with data-dependent result sizes, in linear time.

    The result sizes of such a node do not follow from sizes that are known before it runs: those of
    inputs, and of the results of earlier nodes. Shapes must be inferred.
    """
    known: set[str | None] = set()
    for value in model.graph.inputs:
        known |= _names(value)
    decided = set()
    for node in model.graph:
        if is_constant_node(node):
            continue
        if not _follows(model, node, known):
            decided.add(node)
        for value in node.outputs:
            known |= _names(value)
    return decided


def _names(value: ir.Value) -> set[str | None]:
    """Return the symbols in the shape of ``value``."""
    dims = value.shape.dims if value.shape is not None else ()
    return {name for dim in dims for name in names_of(dim)}


def _follows(model: ir.Model, node: ir.Node, known: set[str | None]) -> bool:
    """True if the result sizes of ``node`` follow from ``known`` sizes."""
    try:
        program = lower_alone(model, node)
    except (Unsupported, ErrorList):
        return False
    return not unknown_sizes(program, set(known))


def has_refused_node(model: ir.Model) -> bool:
    """True if some node of ``model`` has no Program at any sizes, so that no plan can run it.

    Such a node has neither a lowering nor a body, is refused although all its sizes are known, or
    has an operand or result that is no tensor.
    """
    if not all(map(is_tensor, model.graph.inputs)):
        return True
    for node in scope.nodes(model):
        if not all(map(is_tensor, node.outputs)):
            return True
        if is_constant_node(node) or node.op_type in scope.GRAPH_CARRIERS:
            continue
        known = lowering_of(node.op_type) is not None or node.op_type in EXPANDED_OPERATORS
        if not node.domain and not known:
            return True
    return any(_is_refused(model, node) for node in model.graph)


def _is_refused(model: ir.Model, node: ir.Node) -> bool:
    """True if lowering refuses ``node`` although all sizes are known."""
    if is_constant_node(node) or not (node.domain or all(map(is_known, _values(node)))):
        return False
    try:
        lower_alone(model, node)
    except (Unsupported, ErrorList):
        return True
    return False


def _values(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the operands and results of ``node`` and of the nodes inside of it."""
    for each in (node, *scope.nested_nodes(node)):
        yield from (value for value in (*each.inputs, *each.outputs) if value is not None)


def is_known(value: ir.Value) -> bool:
    """True if all sizes of ``value`` are numbers."""
    return value.shape is not None and all(isinstance(dim, int) for dim in value.shape.dims)
