"""Lower the ONNX opset of the model: ``lower-opset{to=17}``.

    before   opset 23, axes = [1], y = ReduceMean(x, axes); z = RMSNormalization(y, scale)
    after    opset 17, y = ReduceMean<axes=[1]>(x); z = y / Sqrt(mean of y * y) * scale

``optimize`` runs it first if a lower opset than the model's is requested. The IR version becomes
that of the opset.

Needs    (1) for each operator that changed between the opsets an earlier form, a wider element
         type in which the earlier form computes the same, or a function body. All nodes that
         have none of these are refused together, each with its reason. Operators of smelt whose
         own body needs a later opset are replaced by that body first.
Keeps    (1) a model of this opset or an earlier one.
"""

from __future__ import annotations

from smelt.ir.interface_change import OpsetChanged
from smelt.ir.opsets.lower_opset import lower_opset as lower_model
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.operators import all_operators
from smelt.operators.declare import Operator
from smelt.operators.expand import expand
from smelt.passes.base import PassContext, graph_pass, rounding
from smelt.passes.interface.raise_opset import Opset


@graph_pass(
    "lower_opset",
    __doc__,
    exactness=rounding(64, "a body rounds after each of its operators"),
    default=False,
    options_type=Opset,
)
def lower_opset(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Opset) -> None:
    """Lower the opset of the model.

    Raises ErrorList of Unsupported E231, and leaves the model unchanged, if a node has no form.
    """
    before = cx.model.opset_imports.get("", options.to)
    if before <= options.to or rewriter.exhausted:  # keeps 1
        return
    expand(cx.model, [op for op in all_operators() if _begins_later(op, options.to)])
    lower_model(cx.model, options.to)  # needs 1
    # This counts as one edit, because a model with operators of two opsets is invalid.
    rewriter.count += 1
    stats.fired["opset lowered"] += 1
    stats.interface.append(OpsetChanged(before, options.to, options.needed_by))
    cx.renew()


def _begins_later(operator: Operator, to: int) -> bool:
    """True if ``operator`` is smelt's own and its body needs a later opset than ``to``."""
    return operator.domain == "smelt" and operator.body is not None and operator.opset > to
