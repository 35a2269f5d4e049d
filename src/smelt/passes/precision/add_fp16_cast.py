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
from smelt.ir.build import Builder
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import PassContext, assumes, graph_pass
from smelt.passes.operator_names import check_node_patterns, operator_names
from smelt.passes.precision.half_places import FIRST_WITH_CASTS, WIDE, half_places
from smelt.passes.precision.retype import rounded_to

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
    """Convert the selected nodes of all graphs; raises UsageError E603 for an unknown name."""
    kept = operator_names("add-fp16-cast", options.skip_ops_by_type, cx.model)
    patterns = (*options.skip_nodes, *options.only_nodes)
    check_node_patterns("add-fp16-cast", patterns, cx.model)
    options = replace(options, skip_ops_by_type=tuple(sorted(kept)))
    versions = cx.index().opsets
    narrow = _Narrow(cx, rewriter)
    for graph in list(scope.graphs(cx.model)):
        for node in list(graph):
            narrow.note_cast(node)
            if not options.selects(node):
                continue
            chosen = half_places(node, versions[graph])
            if chosen is None:
                continue
            if versions[graph] < FIRST_WITH_CASTS:
                stats.miss("node in float16", "Cast names its type by a text before opset 6", node)
                continue
            reason = narrow.convert(node, *chosen)
            if reason is None:
                stats.fired["node in float16"] += 1
            else:
                stats.miss("node in float16", reason, node)
    narrow.clean()


class _Narrow:
    """Float16 counterparts of float32 values, built where each graph first needs them.

    ``narrow``: counterparts that the model has anyway. ``built``: Casts and constants by graph.
    """

    def __init__(self, cx: PassContext, rewriter: Rewriter) -> None:
        """Begin without float16 values.

        ``narrow`` has the float16 form of a value, ``built`` the Casts made for readers in a graph.
        """
        self.cx = cx
        self.rewriter = rewriter
        self.narrow: dict[ir.Value, ir.Value] = {}
        self.built: dict[tuple[ir.Graph, ir.Value], ir.Value] = {}
        self.casts: list[ir.Node] = []

    def note_cast(self, node: ir.Node) -> None:
        """Remember the operand of a Cast from float16 to float32 as the counterpart of its
        result."""
        source = node.inputs[0] if node.op_type == "Cast" and not node.domain else None
        if source is not None and source.dtype == HALF and node.outputs[0].dtype == WIDE:
            self.narrow[node.outputs[0]] = source

    def convert(self, node: ir.Node, inputs: list[int], outputs: list[int]) -> str | None:
        """Compute ``node`` in float16; return the reason if that is impossible, else None."""
        operands = [node.inputs[index] for index in inputs]
        if any(self._overflows(value) for value in operands):  # keeps 2
            return "a constant is over 65504"
        b = self.rewriter.builder(node, [node], "add_fp16_cast")
        values = list(node.inputs)
        for index in inputs:
            values[index] = self._in_half(node.inputs[index], b)
        attributes = list(node.attributes.values())
        new_node = ir.Node(
            "", node.op_type, values, attributes, num_outputs=len(node.outputs), name=node.name
        )
        results: list[ir.Value | None] = list(b.add(new_node))
        for index in outputs:
            narrow = new_node.outputs[index]
            narrow.dtype, narrow.shape = HALF, node.outputs[index].shape
            wide = b.op("Cast", narrow, to=int(WIDE))
            results[index] = wide
            self.narrow[wide] = narrow
        try:
            self.rewriter.replace(node, results, trust_shape=True, rule="add_fp16_cast")
        except Refused as refused:
            self._forget(b)
            return str(refused)
        self.casts += [n for n in b.created if n.op_type == "Cast"]
        return None

    def clean(self) -> None:
        """Remove the casts and constants that nobody reads any more."""
        self.rewriter.remove_dead(self.casts)
        for _, value in self.built:
            self.rewriter.drop_initializer(value)

    def _in_half(self, value: ir.Value | None, b: Builder) -> ir.Value:
        """Return the float16 counterpart of ``value``: a known one, a new constant or a Cast."""
        assert value is not None
        narrow = self.narrow.get(value) or self.built.get((b.graph, value))
        if narrow is None:
            array = self.cx.constants.get(value, limit=None)
            if array is None:
                narrow = b.op("Cast", value, to=int(HALF))
            else:
                narrow = b.constant(rounded_to(array, HALF), name=value.name)
            self.built[b.graph, value] = narrow
        return narrow

    def _overflows(self, value: ir.Value | None) -> bool:
        """True if ``value`` is a constant with a finite element over 65504."""
        array = self.cx.constants.get(value, limit=None)
        if array is None:
            return False
        return bool(np.any(np.isfinite(array) & (np.abs(array) > LARGEST)))

    def _forget(self, b: Builder) -> None:
        """Discard the nodes of ``b`` and the counterparts that they compute."""
        discarded = {value for node in b.created for value in node.outputs} | set(b.initializers)
        self.built = {key: narrow for key, narrow in self.built.items() if narrow not in discarded}
        self.narrow = {
            value: narrow for value, narrow in self.narrow.items() if narrow not in discarded
        }
        b.discard()
