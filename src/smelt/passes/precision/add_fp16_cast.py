"""Compute in float16 instead of float32: ``add-fp16-cast{skip-ops-by-type=Resize,Range}``.

    before   x: f32 ─> Conv ─> Relu ─> y: f32
    after    x: f32 ─> Cast ─> Conv ─> Relu ─> Cast ─> y: f32

Inputs and outputs keep their types; constants are stored in float16. Options: ``skip-ops-by-type``
lists operators, spelled as in ONNX or as in Core ML (``reduce_mean``); ``skip-nodes`` and
``only-nodes`` list patterns of node names such as ``/head/*``.

Needs    (1) values within the range of float16, up to 65504, at every step.
Keeps    (1) in float32: operators that ONNX does not define for float16, random and quantizing
         ones, running and scattered sums, scales of Resize, statistics of BatchNormalization,
         coordinates of GridSample; (2) an operator with a finite constant over 65504, or with a
         result of unknown type. A constant that would round to 0 becomes the smallest float16.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import PassContext, assumes, graph_pass
from smelt.passes.operator_names import check_node_patterns, operator_names
from smelt.passes.precision.half_places import FIRST_WITH_CASTS, Places, half_places
from smelt.passes.precision.retype import retype

LARGEST = 65504.0
"""The largest finite float16."""

HALF = ir.DataType.FLOAT16


@dataclass(frozen=True)
class Selection:
    """Nodes that stay in float32; patterns match node names as in a shell."""

    skip_ops_by_type: tuple[str, ...] = ()
    skip_nodes: tuple[str, ...] = ()
    only_nodes: tuple[str, ...] = ()

    def selects(self, node: ir.Node) -> bool:
        """True if the options let ``node`` be computed in float16."""
        if node.op_type in self.skip_ops_by_type:
            return False
        name = node.name or ""
        if self.only_nodes and not any(fnmatchcase(name, p) for p in self.only_nodes):
            return False
        return not any(fnmatchcase(name, pattern) for pattern in self.skip_nodes)


@graph_pass(
    "add_fp16_cast",
    __doc__,
    # needs 1
    exactness=assumes("all computed values fit float16, to 11 bits", ulp=1 << 13),
    options_type=Selection,
    default=False,
    source="Core ML MIL: common::add_fp16_cast",
)
def add_fp16_cast(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Selection
) -> None:
    """Convert the selected nodes of all graphs; raises UsageError E603 for an unknown name.

    Each node counts as an edit, so a bisection finds the node whose conversion breaks a model.
    """
    kept = operator_names("add-fp16-cast", options.skip_ops_by_type, cx.model)
    patterns = (*options.skip_nodes, *options.only_nodes)
    check_node_patterns("add-fp16-cast", patterns, cx.model)
    options = replace(options, skip_ops_by_type=tuple(sorted(kept)))
    places: dict[ir.Node, Places] = {}
    for graph in scope.graphs(cx.model):
        version = cx.index().opsets[graph]
        for node in graph if not rewriter.exhausted else ():
            chosen = half_places(node, version) if options.selects(node) else None
            reason = None if chosen is None else _reason(cx, node, chosen, version)
            if reason is not None:
                stats.miss("node in float16", reason, node)
            elif chosen is not None and not rewriter.exhausted:
                places[node] = chosen
                rewriter.count += 1
                stats.fired["node in float16"] += 1
    retype(cx.model, places, HALF, cx.constants)


def _reason(cx: PassContext, node: ir.Node, chosen: Places, version: int) -> str | None:
    """Return why ``node`` stays in float32 although its operator has a form in float16."""
    if version < FIRST_WITH_CASTS:
        return "Cast names its type by a text before opset 6"
    for index in chosen[0]:  # keeps 2
        array = cx.constants.get(node.inputs[index], limit=None)
        if array is not None and bool(np.any(np.isfinite(array) & (np.abs(array) > LARGEST))):
            return "a constant is over 65504"
    return None
