"""Give every node and every value a unique name.

    before   "add": a = Add(x, x)    "add": y = Neg(a)    (no name): ...
    after    "add": a = Add(x, x)    "add_0": y = Neg(a)  "Relu_0": ...

ONNX Runtime rejects two nodes with one name, and code generators turn names into identifiers.

Needs    (1) node names that are unique in the model, its subgraphs and functions; (2) value names
         that are unique in the main graph or the function, subgraphs included: no inner value
         hides an outer one.
Keeps    (1) the first use of each name; (2) names of inputs and outputs; (3) omitted outputs of
         nodes, whose name is empty.
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
    """Rename nodes and values whose name is missing or already used."""
    if rewriter.exhausted:
        return
    for label, count in (
        ("node named", names.name_nodes(cx.model)),  # needs 1
        ("value named", names.name_values(cx.model)),  # needs 2, keeps 1, 2, 3
    ):
        if count:
            stats.fired[label] += count
            rewriter.count += count
