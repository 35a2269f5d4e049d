"""Give every node and every value a name of its own.

    before   "add": a = Add(x, x)    "add": y = Neg(a)    (no name): ...
    after    "add": a = Add(x, x)    "add_0": y = Neg(a)  "Relu_0": ...

ONNX Runtime refuses two nodes of one name, and code generators make identifiers of names.

Needs    (1) names of nodes that differ over the model, its subgraphs and functions; (2) names of
         values that differ over the model, or the function, with all graphs in it: none hides a
         value around it.
Keeps    (1) the first of each name; (2) names of inputs and outputs, of which no two may be the
         same; (3) outputs of nodes that are left out, which have no name.
"""

from __future__ import annotations

from smelt.ir import names
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass


@graph_pass(
    "dedup_op_and_var_names",
    __doc__,
    exactness=EXACT,
    source="Core ML MIL: common::dedup_op_and_var_names",
)
def dedup_op_and_var_names(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    if rewriter.exhausted:
        return
    for what, count in (
        ("node named", names.name_nodes(cx.model)),  # needs 1
        ("value named", names.name_values(cx.model)),  # needs 2, keeps 1, 2, 3
    ):
        if count:
            stats.fired[what] += count
            rewriter.count += count
