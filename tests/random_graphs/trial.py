"""One drawn model, optimized once and twice, and held against what it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import onnx_ir as ir
from fixpoint import difference, optimized
from random_graphs.drawing import OPSETS, draw
from random_graphs.forms import rewritten
from random_graphs.judging import Judge

import smelt
from smelt.compiler import optimize_model
from smelt.errors import SmeltError
from smelt.passes.base import joint_exactness
from smelt.passes.pipeline import parse, passes_of
from smelt.passes.run import PassReport

EXACT = ",".join(
    dict.fromkeys(
        p.spelling for p in passes_of(parse("default")) if p.exactness.kind == "exact" or p.declares
    )
)
PIPELINES = ["default", f"fixpoint({EXACT}){{max=4}}"]
"""All passes, and those that mostly promise the same bits: then numbers near overflow count, too."""


@dataclass(frozen=True)
class Trial:
    """What came of one seed.

    ``valid`` is False for a draw that no runtime takes, or of which they leave open what it gives.
    """

    seed: int
    valid: bool = True
    nodes_before: int = 0
    nodes_after: int = 0
    problems: list[str] = field(default_factory=list)


def try_seed(
    seed: int, focus: str = "", *, twice: bool = False, fixpoint: bool = False, forms: bool = False
) -> Trial:
    """Draw a model, with a family in ``focus`` at any opset, and judge what the pipelines make of it.

    ``forms`` judges another form of the same model, too: with functions, or in an old IR version.
    ``twice`` judges the default result optimized again, too; ``fixpoint`` asks that this changes
    nothing.
    """
    source = draw(seed, focus, OPSETS[seed % len(OPSETS)] if focus else None)
    try:
        smelt.load(source)
        judge = Judge(source, seed)
    except SmeltError:
        return Trial(seed, valid=False)  # such as an axis that turns out too short to be cut
    if judge.may_lose_nan():
        return Trial(seed, valid=False)  # what it gives hangs on how a loop falls
    problems: list[str] = []
    once, reports = source, list[PassReport]()
    for name in PIPELINES:
        result = source.clone()
        made = optimize_model(result, pipeline=name)
        problems += [f"seed {seed}, {name}: {problem}" for problem in judged(judge, result, made)]
        if name == "default":
            once, reports = result, made
    if fixpoint:
        proto = smelt.to_proto(once)
        changed = difference(proto, optimized(proto))
        problems += [f"seed {seed}, run again: {changed}"] if changed else []
    if forms:
        other = smelt.load(rewritten(source, seed))
        found = judged(judge, other, optimize_model(other))
        problems += [f"seed {seed}, another form: {problem}" for problem in found]
    if twice:
        again = once.clone()
        reports += optimize_model(again)
        found = judged(judge, again, reports)
        problems += [f"seed {seed}, default twice: {problem}" for problem in found]
    return Trial(seed, True, len(source.graph), len(once.graph), problems)


def judged(judge: Judge, model: ir.Model, reports: Iterable[PassReport]) -> list[str]:
    """What is wrong with ``model``, by what the passes that changed it declare together."""
    return judge.problems(
        model, joint_exactness(each.exactness for each in reports if each.changed)
    )
