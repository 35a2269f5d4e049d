"""Replace operators that ONNX Runtime lacks or computes wrong by standard operators.

    before   Max(a: int64, b: int64) ─> y
    after    Where(Greater(a, b), a, b) ─> y

``operators/runtime_gaps.py`` and ``operators/runtime_defects.py`` list these operators by element
type. The pass runs after every pipeline of ``optimize`` and of the target ``onnx``, before the
model is written.

Needs    (1) a known element type; (2) for integer operators that are wrong for large numbers,
         integers whose bounds do not exclude large numbers.
Keeps    (1) operators of the source model that ONNX Runtime computes wrong.
"""

from __future__ import annotations

import onnx_ir as ir

from smelt.ir.element_type import ElementTypes
from smelt.ir.opset import opset_of
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats, replace_or_miss
from smelt.operators.expand import expand_node
from smelt.operators.runtime_gaps import stand_in
from smelt.passes.base import Options, PassContext, graph_pass, rounding

NAME = "replace_runtime_gaps"


@graph_pass(
    NAME,
    __doc__,
    exactness=rounding(64, "a body rounds after each of its operators"),
    default=False,
)
def replace_runtime_gaps(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace the listed operators in all graphs."""
    types = ElementTypes(opset_of(cx.model))
    for graph in cx.index().graphs:
        for node in list(graph):
            if node not in rewriter.dead:
                _replace(rewriter, node, types, stats)


def _replace(rewriter: Rewriter, node: ir.Node, types: ElementTypes, stats: RuleStats) -> None:
    """Replace ``node`` by standard operators if it is listed for its element types."""
    operator = stand_in(node, types, of_source=False)  # needs 1, 2, keeps 1
    if operator is None or rewriter.exhausted:
        return
    types.note(node.inputs)  # values of functions have no types of their own
    b = rewriter.builder(node, [node], NAME)
    results = expand_node(b, node, operator)
    if results is None:
        return
    replace_or_miss(rewriter, stats, NAME, node, results, b, node.op_type)
