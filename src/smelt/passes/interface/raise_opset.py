"""Raise the ONNX opset of the model: ``raise-opset{to=20}``.

    before   opset 17, y = ReduceMean<axes=[1]>(x)
    after    opset 20, axes = [1], y = ReduceMean(x, axes)

``optimize`` runs it automatically if a rule needs an operator of a later opset; ``needed-by`` then
names the passes.

Needs    (1) an equivalent form for each operator that changed between the opsets.
Keeps    (1) a model of this opset or a later one.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.ir import scope
from smelt.ir.interface_change import OpsetChanged
from smelt.ir.opsets.raise_opset import LOWEST_GOAL
from smelt.ir.opsets.raise_opset import raise_opset as raise_model
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass, rounding

OTHER_KERNELS = {"AveragePool": 19}
"""Operators that ONNX Runtime computes by another kernel, with other rounding, from an opset on."""

ROUNDED_OTHERWISE = "operator with another kernel"
"""The name under which the statistics count such operators."""

BY_OTHER_KERNELS = rounding(4, "ONNX Runtime sums an AveragePool in another order from opset 19 on")


@dataclass(frozen=True)
class Opset:
    """``to``: the opset. ``needed_by``: the passes that need it, for the report."""

    to: int = LOWEST_GOAL
    needed_by: tuple[str, ...] = ()


@graph_pass(
    "raise_opset",
    __doc__,
    exactness=BY_OTHER_KERNELS,
    declares=lambda options, stats: BY_OTHER_KERNELS if ROUNDED_OTHERWISE in stats.fired else EXACT,
    default=False,
    options_type=Opset,
)
def raise_opset(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Opset) -> None:
    """Raise the opset of the model.

    Raises ErrorList of Unsupported E230, and leaves the model unchanged, if an operator has no
    form.
    """
    before = cx.model.opset_imports.get("", options.to)
    if before >= options.to or rewriter.exhausted:  # keeps 1
        return
    changing = {name for name, version in OTHER_KERNELS.items() if before < version <= options.to}
    changed_count = sum(not n.domain and n.op_type in changing for n in scope.nodes(cx.model))
    raise_model(cx.model, options.to)  # needs 1
    # This counts as one edit, because a model with operators of two opsets is invalid.
    rewriter.count += 1
    stats.fired["opset raised"] += 1
    if changed_count:
        stats.fired[ROUNDED_OTHERWISE] += changed_count
    stats.interface.append(OpsetChanged(before, options.to, options.needed_by))
    cx.renew()
