"""Replace an operator that the target has no kernel for by its ONNX function body.

    before   HannWindow(n) ─> y
    after    0.5 - 0.5 * Cos(Range(0, n) * (2 * π / n)) ─> y

Operators of other domains, also of another runtime's such as ``com.microsoft``, have the body of
their declaration: on ``c``, a Cholesky factor is a loop over columns.

Needs    (1) a target that tells which nodes it computes; (2) a function body for the node and the
         types of its operands in ONNX's schema, of the model's opset or of an earlier one that can
         be raised to it. A body of a later opset, or operand types that the model's opset lacks,
         raise the opset of the model.
         (3) for a body with a Loop or an If: a target that computes these.
Keeps    (1) nodes for which the target has a kernel; (2) all nodes without a target.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.inlining import inline
from smelt.ir.opset import opset_of
from smelt.ir.opsets.operator_body import body_of, has_body
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.value_facts.element_type import first_opset
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.operators import find
from smelt.operators.declare import Operator
from smelt.operators.expand import expand_node
from smelt.passes.base import Options, PassContext, graph_pass, rounding

NAME = "inline_operator_bodies"


@graph_pass(
    NAME,
    __doc__,
    exactness=rounding(64, "a body rounds after each of its operators"),
    default=False,
)
def inline_operator_bodies(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Inline the body of each node that the target does not compute."""
    if cx.computes is None:  # needs 1, keeps 2
        return
    for graph in cx.index().graphs:
        for node in list(graph):
            declared = find(node.domain, node.op_type) if node.domain else None
            if declared is not None and declared.body is not None:
                if node not in rewriter.dead and _is_typed(node) and not cx.computes(node):
                    _expand(rewriter, node, declared, stats)
                continue
            version = opset_of(cx.model, node.domain)
            if node in rewriter.dead or not has_body(node.op_type, node.domain, version):
                continue
            if _is_typed(node) and not cx.computes(node):  # keeps 1
                _inline(cx, rewriter, node, version, stats)


def _expand(rewriter: Rewriter, node: ir.Node, operator: Operator, stats: RuleStats) -> None:
    """Replace ``node`` by the body of its declared operator.

    If no body fits its operands, record a miss. The miss names the opset that first has the types
    of the operands, if the model's is lower: the driver then raises the model to it.
    """
    b = rewriter.builder(node, [node], NAME)
    results = expand_node(b, node, operator) if operator.knows(node) else None
    if results is None:  # needs 2
        types = [value.dtype for value in node.inputs if value is not None and value.dtype]
        needed_opset = max((operator.opset, *map(first_opset, types)))
        missing_opset = needed_opset if opset_of(rewriter.model) < needed_opset else 0
        reason = "the operator has no function body for these operands"
        stats.miss(NAME, reason, node, missing_opset)
        return
    replace_or_miss(rewriter, stats, NAME, node, results, b, node.op_type)


def _is_typed(node: ir.Node) -> bool:
    """True if dtype and shape of all inputs are known, as bodies and kernels require."""
    return all(v is None or (v.dtype is not None and v.shape is not None) for v in node.inputs)


def _inline(
    cx: PassContext, rewriter: Rewriter, node: ir.Node, version: int, stats: RuleStats
) -> None:
    """Replace ``node`` by the function body of ONNX's schema; record a miss if there is none.

    ``body_of`` returns an opset instead of a body if the body has operators of that opset.
    """
    body = body_of(node, version, opset_of(cx.model))
    if body is None:  # needs 2
        stats.miss(NAME, "the operator has no function body for these operands", node)
        return
    if isinstance(body, int):
        stats.miss(NAME, f"its function body has operators of opset {body}", node, body)
        return
    carriers = {inner.op_type for inner in body} & scope.GRAPH_CARRIERS
    if cx.kernels is not None and not carriers <= cx.kernels:  # needs 3
        stats.miss(NAME, f"its function body has {' and '.join(sorted(carriers))}", node)
        return
    for domain, opset in body.opset_imports.items():
        rewriter.model.opset_imports.setdefault(domain, opset)
    bindings = [*node.inputs, *(None for _ in body.inputs[len(node.inputs) :])]
    try:
        inline(rewriter, node, body, bindings, rule=NAME, foreign=True)
    except Refused as refused:
        stats.miss(NAME, str(refused), node)
        return
    stats.fired[node.op_type] += 1
