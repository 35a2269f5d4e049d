"""Return the scores of a classifier as a tensor instead of dictionaries.

    before   scores ─> ZipMap ─> [{0: .9, 1: .1}, ...]      after   scores: float[N,2]

Column k belongs to key k of the ZipMap; the description of the output lists the keys.

Needs    (1) an explicit request, because it changes the interface. ZipMap needs a runtime that
         supports maps; C programs do not; (2) a row of scores for each dictionary.
Keeps    (1) names of outputs; (2) maps that the model itself reads.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.interface_change import PortChange, ports_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass

ML = "ai.onnx.ml"
KEYS = ("classlabels_int64s", "classlabels_strings")


@graph_pass("zip_map_to_tensor", __doc__, exactness=EXACT, default=False)  # needs 1
def zip_map_to_tensor(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace each output of a ZipMap by its scores."""
    graph = cx.model.graph
    for value in list(dict.fromkeys(graph.outputs)):
        node = value.producer()
        if node is None or (node.domain, node.op_type) != (ML, "ZipMap") or rewriter.exhausted:
            continue
        if value.uses() or node.graph is not graph:  # keeps 2
            stats.miss("zip_map_to_tensor", "the model itself reads the dictionaries", node)
            continue
        scores = node.inputs[0]
        if scores is None or scores.shape is None or len(scores.shape) != 2:  # needs 2
            stats.miss("zip_map_to_tensor", "the scores are not known to be of rank 2", node)
            continue
        keys = _keys(node)
        stats.interface += [
            PortChange(*port, dtype=ir.DataType.FLOAT, columns=keys)
            for port in ports_of(graph, value)
        ]
        _return_scores(rewriter, node, scores, keys)
        stats.fired["dictionaries made a tensor"] += 1
    if stats.fired:
        cx.shapes.redeclare_interface()


def _keys(node: ir.Node) -> tuple[int | str, ...]:
    """Return the keys of the dictionaries, in the order of the columns."""
    for name in KEYS:
        attr = node.attributes.get(name)
        if attr is not None and len(attr.value):
            return tuple(attr.value)
    return ()


def _return_scores(
    rewriter: Rewriter, node: ir.Node, scores: ir.Value, keys: tuple[int | str, ...]
) -> None:
    """Replace the output of ``node`` by a copy of ``scores`` with the same name."""
    graph, old = rewriter.model.graph, node.outputs[0]
    b = rewriter.builder(node, [node], "zip_map_to_tensor")
    new = b.op("Identity", scores)
    new.name, old.name = old.name, None  # keeps 1
    new.doc_string = f"columns: {', '.join(map(str, keys))}"
    for index, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[index] = new
    rewriter.remove_dead([node])
    rewriter.count += 1
