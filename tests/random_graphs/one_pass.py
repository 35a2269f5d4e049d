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
from smelt.passes.base import Pass, PassContext
from smelt.passes.registry import passes
from smelt.runtime.fold import evaluator

STRUCTURED = "structured"
"""The focus of whole blocks of networks, some of them in half precision."""

CHANGES_INTERFACE = {"add-fp16-cast", "update-output-dtypes", "raise-opset"}
"""Passes that change types or opsets. Their own tests compare their results."""


def candidates() -> list[Pass]:
    """All registered passes that keep the interface, make operators of ONNX and assume nothing."""
    return [
        each
        for each in passes().values()
        if each.spelling not in CHANGES_INTERFACE
        and each.exactness.kind != "assumes"
        and not each.makes
    ]


@dataclass
class Held:
    """What came of drawn models: how often each pass changed one, and what was wrong."""

    drawn: int = 0
    changed: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)


def hold(seed: int, focus: str, held: Held) -> None:
    """Draw a model, run each pass alone on a copy and judge what it makes; add to ``held``."""
    source = _drawn(seed, focus)
    try:
        smelt.load(source)
        judge = Judge(source, seed)
    except SmeltError:
        return  # a draw that no runtime takes
    if judge.may_lose_nan():
        return
    held.drawn += 1
    for pass_ in candidates():
        model = source.clone()
        stats = _run(pass_, model)
        if not stats.rewrites or stats.interface:
            continue
        held.changed[pass_.spelling] += 1
        try:
            found = judge.problems(model, pass_.exactness_of(stats))
        except SmeltError as error:
            found = [str(error)]
        held.problems += [f"seed {seed} {focus}, {pass_.spelling}: {problem}" for problem in found]


def _drawn(seed: int, focus: str) -> ir.Model:
    """The model of ``seed``, which may be invalid."""
    return ir.from_proto(structured(seed).model()) if focus == STRUCTURED else draw(seed, focus)


def _run(pass_: Pass, model: ir.Model) -> RuleStats:
    """The statistics of one run of the pass over ``model``."""
    cx = PassContext.of(model, evaluator(model))
    stats = pass_.run(cx)
    cx.shapes.restore_interface()
    return stats
