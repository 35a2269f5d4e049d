"""Raise the ONNX opset of the model: ``raise-opset{to=20}``.

    before   opset 17, y = ReduceMean<axes=[1]>(x)
    after    opset 20, axes = [1], y = ReduceMean(x, axes)

``optimize`` runs it by itself where a rule needs a later operator; ``needed-by`` names the passes
then.

Needs    for each operator that changed between the opsets a form of the same meaning.
Keeps    a model that has this opset or a later one.
"""

from __future__ import annotations

from dataclasses import dataclass

from smelt.ir.interface_change import OpsetRaised
from smelt.ir.raise_opset import LOWEST_GOAL
from smelt.ir.raise_opset import raise_opset as raise_model
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, PassContext, graph_pass


@dataclass(frozen=True)
class Opset:
    """``to``: the opset. ``needed_by``: the passes that ask for it, for the report."""

    to: int = LOWEST_GOAL
    needed_by: tuple[str, ...] = ()


@graph_pass("raise_opset", __doc__, exactness=EXACT, default=False, options_type=Opset)
def raise_opset(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Opset) -> None:
    """Raises an ErrorList of Unsupported E230, with the model unchanged, if an operator cannot."""
    before = cx.model.opset_imports.get("", options.to)
    if before >= options.to or rewriter.exhausted:
        return
    raise_model(cx.model, options.to)
    # All of it is one edit: an operator in the form of another opset is no valid model.
    rewriter.count += 1
    stats.fired["opset raised"] += 1
    stats.interface.append(OpsetRaised(before, options.to, options.needed_by))
    cx.renew()
