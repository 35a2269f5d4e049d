"""Replace an operator that a consumer does not take by more common ones.

    before   x ─> HardSwish ─> y
    after    x * Clip(x / 6 + 0.5, 0, 1) ─> y

The decompositions are in ``operators/decompositions``. The pass runs for ``--for CONSUMER``, after
the default pipeline.

Needs    (1) a consumer that says which nodes it takes; (2) a decomposition, in one step or several,
         into operators that it takes; (3) the sizes, constants and types that this decomposition
         asks for.
Keeps    (1) nodes that the consumer takes; (2) all nodes without a consumer; (3) a node whose
         attributes refer to those of a function.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.opset import attribute_names, default_attribute, opset_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.operators.decompositions import ROWS
from smelt.operators.decompositions.row import Call
from smelt.passes.base import Options, PassContext, graph_pass, rounding

NAME = "decompose_operators"


@graph_pass(
    NAME,
    __doc__,
    exactness=rounding(64, "a decomposition rounds after each of its operators"),
    default=False,
)
def decompose_operators(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace the nodes that the consumer does not take and that have a decomposition."""
    if cx.computes is None or cx.kernels is None:  # needs 1, keeps 2
        return
    for graph in cx.index().graphs:
        for node in list(graph):
            has_decomposition = (
                not node.domain and node.op_type in ROWS and node not in rewriter.dead
            )
            if has_decomposition and not cx.computes(node):  # keeps 1
                _decompose(cx, rewriter, node, stats)


def _decompose(cx: PassContext, rewriter: Rewriter, node: ir.Node, stats: RuleStats) -> None:
    """Replace ``node`` by the first decomposition that applies, or record a miss."""
    attributes = list(node.attributes.values())
    if rewriter.exhausted or any(attribute.is_ref() for attribute in attributes):  # keeps 3
        return
    opset = opset_of(cx.model)
    names = attribute_names(node.op_type, opset)
    values = {name: default_attribute(node.op_type, name, opset) for name in names}
    values |= {attribute.name: attribute.value for attribute in attributes}
    assert cx.kernels is not None
    for row in ROWS[node.op_type]:
        if not all(_ends_in(cx.kernels, name, (node.op_type,)) for name in row.operators()):
            stats.miss(NAME, f"it would make {row.makes}, and not all are taken", node)  # needs 2
            continue
        b = rewriter.builder(node, [node], NAME)
        replacement = row.body(Call(b, node, values, cx.constants))
        if replacement is None:  # needs 3
            b.discard()
            stats.miss(NAME, f"its sizes, constants or types do not fit {row.makes}", node)
            continue
        results = replacement if isinstance(replacement, tuple) else (replacement,)
        replace_or_miss(rewriter, stats, NAME, node, results, b, node.op_type)
        return


def _ends_in(kernels: frozenset[str], op_type: str, above: tuple[str, ...]) -> bool:
    """True if ``op_type`` is one of ``kernels``, or decomposes into such operators.

    ``above`` lists the operators whose decomposition contains it.
    """
    if op_type in kernels:
        return True
    if op_type in above:
        return False
    return any(
        all(_ends_in(kernels, name, (*above, op_type)) for name in row.operators())
        for row in ROWS.get(op_type, ())
    )
