"""Remove nodes, constants, functions, imports and optional outputs that nobody reads.

    before   x ─┬─> Relu ─> y            after   x ─> Relu ─> y
                └─> Exp ─> (nobody)

Needs    (1) no reader; (2) for optional outputs, an operator that computes the same without them.
Keeps    (1) inputs and outputs of the model; (2) values that a branch or loop body captures;
         (3) outputs that put a BatchNormalization into training mode, and outputs that an
         Attention with past keys must have.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass


@graph_pass(
    "dead_code_elimination",
    __doc__,
    exactness=EXACT,
    source="Core ML MIL: common::dead_code_elimination",
    by_rewriter=True,
)
def dead_code_elimination(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Remove dead nodes, outer graphs first: subgraphs die with their node."""
    graphs = cx.index().graphs
    for graph in graphs:
        for node in reversed(graph):
            if scope.is_unread(node) and node not in rewriter.dead:  # needs 1, keeps 2
                stats.fired["dead node"] += 1
                rewriter.remove_dead([node])
                rewriter.count += 1
    rewriter.flush()
    _drop_outputs(cx, rewriter, stats)
    remaining_graphs = graphs if len(graphs) == 1 else scope.graphs(cx.model)
    for graph in remaining_graphs:
        for value in list(graph.initializers.values()):
            if rewriter.drop_initializer(value):  # keeps 1
                stats.fired["unused constant"] += 1
                stats.unseen += 1
    _drop_functions(cx, rewriter, stats)
    _drop_imports(cx.model, rewriter, stats)


def _drop_outputs(cx: PassContext, rewriter: Rewriter, stats: RuleStats) -> None:
    """Drop unread optional outputs at the end of a node, such as the mask of Dropout."""
    for node in cx.index().nodes(("", op_type) for op_type in _FEWEST):
        count = len(node.outputs)
        if count == 1 or node.graph is None:
            continue
        fewest = _FEWEST[node.op_type](node)
        while count > fewest and scope.is_dead(node.outputs[count - 1]):
            count -= 1
        if count < len(node.outputs):
            node.resize_outputs(count)
            stats.fired["unused output"] += 1
            rewriter.count += 1


def _one_output(node: ir.Node) -> int:
    """Return 1, the number of outputs that the node must keep."""
    return 1


def _outputs_of_attention(node: ir.Node) -> int:
    """Return 3 for an Attention with past keys or values, which must return present ones, else
    1."""
    return 3 if any(value is not None for value in node.inputs[4:6]) else 1


_FEWEST: Mapping[str, Callable[[ir.Node], int]] = {  # needs 2, keeps 3
    **dict.fromkeys(
        ("Dropout", "LayerNormalization", "MaxPool", "SoftmaxCrossEntropyLoss"), _one_output
    ),
    **dict.fromkeys(("GRU", "LSTM", "RNN", "Unique"), _one_output),
    "Attention": _outputs_of_attention,
}
"""The number of outputs that a node of each operator must keep. Operators that change their meaning
with the number of outputs are absent: Split cuts differently, and BatchNormalization before opset
14 switches to training."""


def _drop_functions(cx: PassContext, rewriter: Rewriter, stats: RuleStats) -> None:
    """Delete the functions that no node calls, directly or through other functions."""
    model = cx.model
    if not model.functions:
        return
    called: dict[ir.OperatorIdentifier, None] = {}
    pending = [model.graph]
    while pending:
        for graph in scope.graphs_below(pending.pop()):
            for node in graph:
                key = node.op_identifier()
                if key in model.functions and key not in called:
                    called[key] = None
                    pending.append(model.functions[key].graph)
    for key in [key for key in model.functions if key not in called]:
        del model.functions[key]
        cx.forget_index()
        stats.fired["unused function"] += 1
        rewriter.count += 1


def _drop_imports(model: ir.Model, rewriter: Rewriter, stats: RuleStats) -> None:
    """Delete imports of domains that no node or function uses; the ONNX domain stays."""
    if model.opset_imports.keys() <= {""}:
        return
    used = {node.domain for node in scope.nodes(model)} | {key[0] for key in model.functions}
    for domain in [domain for domain in model.opset_imports if domain and domain not in used]:
        del model.opset_imports[domain]
        stats.fired["unused import"] += 1
        rewriter.count += 1
