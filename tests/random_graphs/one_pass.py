"""Each pass alone on drawn models, held to what it declares."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import onnx_ir as ir
from random_graphs.drawing import draw
from random_graphs.judging import Judge
from random_graphs.structured import structured

import smelt
from smelt.errors import SmeltError
from smelt.ir.worklist import RuleStats
from smelt.passes.base import PassContext
from smelt.passes.pipeline import Step, parse
from smelt.passes.registry import passes
from smelt.runtime.fold import evaluator

STRUCTURED = "structured"
"""The focus of whole blocks of networks, some of them in half precision."""

CHANGES_INTERFACE = {"add-fp16-cast", "update-output-dtypes", "raise-opset"}
"""Passes that change types or opsets. Their own tests compare their results."""


ASSUMING = parse(
    "select-optimization{assume-finite=true},fuse-onehot-matmul-to-gather{assume-in-range=true}"
)
"""Options that assume something of the inputs, which normal numbers and made-up indices satisfy."""


def candidates() -> list[Step]:
    """All registered passes that keep the interface, make operators of ONNX and assume nothing.

    ``ASSUMING`` follow them.
    """
    assuming_nothing = [
        Step(each, None)
        for each in passes().values()
        if each.spelling not in CHANGES_INTERFACE
        and each.exactness.kind != "assumes"
        and not each.makes
    ]
    return [*assuming_nothing, *(step for step in ASSUMING if isinstance(step, Step))]


@dataclass
class Held:
    """What came of drawn models: how often each pass changed one, and what was wrong."""

    drawn: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def hold(seed: int, focus: str, held: Held) -> None:
    """Draw a model, run each pass alone on a copy and judge what it makes; add to ``held``.

    A pass that assumes something is judged on normal inputs alone.
    """
    source = _drawn(seed, focus)
    try:
        smelt.load(source)
        judge = Judge(source, seed)
    except SmeltError:
        return  # a draw that no runtime takes
    if judge.may_lose_nan():
        return
    held.drawn += 1
    for step in candidates():
        model = source.clone()
        stats = _run(step, model)
        if not stats.rewrites or stats.interface:
            continue
        held.changed[str(step)] += 1
        declared = step.pass_.exactness_of(stats, step.options)
        try:
            chosen = Judge(source, seed, modes=("normal",)) if step in ASSUMING else judge
            found = chosen.problems(model, declared)
        except SmeltError as error:
            found = [str(error)]
        held.problems += [f"seed {seed} {focus}, {step}: {problem}" for problem in found]


def _drawn(seed: int, focus: str) -> ir.Model:
    """The model of ``seed``, which may be invalid."""
    return ir.from_proto(structured(seed).model()) if focus == STRUCTURED else draw(seed, focus)


def _run(step: Step, model: ir.Model) -> RuleStats:
    """The statistics of one run of the pass over ``model``."""
    cx = PassContext.of(model, evaluator(model))
    stats = step.pass_.run(cx, step.options)
    cx.shapes.restore_interface()
    return stats
