"""Random models stay valid, keep their interface and compute the same, whatever rewrites them."""

from __future__ import annotations

import pytest
from fixpoint import difference, optimized
from random_graphs.drawing import draw
from random_graphs.judging import Judge

import smelt
from smelt.check.each import passes_of
from smelt.compiler import optimize_model
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.passes.base import together
from smelt.passes.pipeline import parse

QUICK, ALL, CHUNK = 300, 10_000, 100
EXACT = ",".join(
    dict.fromkeys(
        p.spelling for p in passes_of(parse("default")) if p.exactness.kind == "exact" or p.declares
    )
)
PIPELINES = ["default", f"fixpoint({EXACT}){{max=4}}"]
"""All passes, and those that mostly promise the same bits: then NaN and infinities count, too."""

CHUNKS = [
    pytest.param(start, marks=[] if start < QUICK else [pytest.mark.slow])
    for start in range(0, ALL, CHUNK)
]


@pytest.mark.parametrize("start", CHUNKS)
def test_random_models_compute_the_same(start: int) -> None:
    problems: list[str] = []
    invalid = before = after = 0
    for seed in range(start, start + CHUNK):
        source = draw(seed)
        try:
            smelt.load(source)
            judge = Judge(source, seed)
        except SmeltError:
            invalid += 1  # such as an axis that turns out too short to be cut
            continue
        for pipeline in PIPELINES:
            result = source.clone()
            reports = optimize_model(result, pipeline=pipeline)
            declared = together(report.exactness for report in reports if report.changed)
            problems += [f"seed {seed}, {pipeline}: {p}" for p in judge.problems(result, declared)]
            if pipeline == "default":
                after += len(result.graph)
                once = smelt.to_proto(result)
                changed = difference(once, optimized(once))
                problems += [f"seed {seed}, run again: {changed}"] if changed else []
        before += len(source.graph)
    assert not problems, "\n".join(problems)
    assert invalid <= CHUNK // 6
    assert after <= 0.7 * before


def test_equal_seeds_draw_equal_models() -> None:
    assert text.canonical(draw(7)) == text.canonical(draw(7))
    assert text.canonical(draw(7)) != text.canonical(draw(8))
