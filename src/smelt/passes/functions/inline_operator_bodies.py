"""Let ONNX's own definition of an operator stand for it, where the target computes it no other way.

    before   HannWindow(n) ─> y
    after    0.5 - 0.5 * Cos(Range(0, n) * (2 * π / n)) ─> y

Operators of other domains, those of another runtime such as ``com.microsoft`` too, have the body
with which they are declared: on ``c``, a Cholesky factor is a loop over columns.

Needs    (1) a target that says which nodes it computes; (2) a function body in ONNX's schema,
         which may be made for the node and the types of its operands, of the opset of the model or
         an earlier one that can be raised to it. A body of a later opset raises the model, and
         so do operands of types that its opset lacks.
Keeps    (1) what the target computes as it is; (2) everything where no target says so.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.element_type import first_opset
from smelt.ir.inlining import inline
from smelt.ir.operator_body import body_of, has_body
from smelt.ir.opset import opset_of
from smelt.ir.rewrite import Refused, Rewriter
from smelt.ir.worklist import RuleStats
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
    if cx.computes is None:  # needs 1, keeps 2
        return
    imported = opset_of(cx.model)
    for graph in cx.index().graphs:
        for node in list(graph):
            foreign = find(node.domain, node.op_type) if node.domain else None
            if foreign is not None and foreign.body is not None:
                if node not in rewriter.dead and _is_typed(node) and not cx.computes(node):
                    _expand(rewriter, node, foreign, stats)
                continue
            version = opset_of(cx.model, node.domain)
            if node in rewriter.dead or not has_body(node.op_type, node.domain, version):
                continue
            if _is_typed(node) and not cx.computes(node):  # keeps 1
                _inline(rewriter, node, version, imported, stats)


def _expand(rewriter: Rewriter, node: ir.Node, operator: Operator, stats: RuleStats) -> None:
    """The body of a declared operator in the place of ``node``."""
    b = rewriter.builder(node, [node], NAME)
    results = expand_node(b, node, operator) if operator.knows(node) else None
    if results is None:  # needs 2
        types = [value.dtype for value in node.inputs if value is not None and value.dtype]
        needed = max(operator.opset, *map(first_opset, types))
        raised = needed if opset_of(rewriter.model) < needed else 0
        stats.miss(NAME, "it has no body for these operands", node, raised)
        return
    try:
        rewriter.replace(node, results, trust_shape=True, rule=NAME)
    except Refused as refused:
        b.discard()
        stats.miss(NAME, str(refused), node)
        return
    stats.fired[node.op_type] += 1


def _is_typed(node: ir.Node) -> bool:
    """Bodies are made for types, and so are kernels."""
    return all(v is None or (v.dtype is not None and v.shape is not None) for v in node.inputs)


def _inline(
    rewriter: Rewriter, node: ir.Node, version: int, imported: int, stats: RuleStats
) -> None:
    body = body_of(node, version, imported)
    if body is None:  # needs 2
        stats.miss(NAME, "it has no body for these operands", node)
        return
    if isinstance(body, int):
        stats.miss(NAME, f"its body is in operators of opset {body}", node, body)
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
