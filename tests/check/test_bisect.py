"""Bisection names the pass and the rewrite, in a logarithmic number of runs."""

from dataclasses import replace

import pytest
from wrong_rules import HARMLESS, WRONG, drop_relu, model, wrong_pass

from smelt.check.bisect import bisect
from smelt.errors import UsageError
from smelt.ir.pattern import op, var
from smelt.ir.rule import rule
from smelt.passes.base import PassContext, exact_but_zero_sign
from smelt.passes.pipeline import Step
from smelt.passes.run import run


def search(text, *passes):
    steps = tuple(Step(item) for item in passes)
    runs = []

    def optimize(work, limit, watching):
        runs.append(limit)
        cx = PassContext.of(work)
        cx.rewrites_left = limit
        return run(cx, steps, watching)

    return bisect(model(text), optimize), runs


@pytest.mark.parametrize("wrong", WRONG, ids=lambda item: item.name)
def test_names_the_wrong_rule(wrong):
    culprit, _ = search(WRONG[wrong], HARMLESS, wrong_pass(wrong))
    assert culprit is not None
    assert culprit.pass_text == wrong.name.replace("_", "-")
    assert culprit.rules == (wrong.name,)
    assert culprit.problems


def test_a_right_pipeline_has_no_culprit():
    assert search(WRONG[drop_relu], HARMLESS)[0] is None


def test_finds_the_one_wrong_rewrite_among_many():
    @rule(op("Neg", op("Neg", var("x"))))
    def drop_pair(m, b):
        return m["x"]

    lines = ["a0 = Abs(x)"]
    for i in range(40):
        # Only the 25th Relu sees negative numbers, so dropping any other one changes nothing.
        middle = f"m{i} = Neg(a{i})" if i == 24 else f"m{i} = Abs(a{i})"
        lines.append(f"{middle}  a{i + 1} = Relu(m{i})")
    text = f"g (float[4] x) => (float[4] a40) {{ {'  '.join(lines)} }}"
    culprit, runs = search(text, wrong_pass(drop_relu), wrong_pass(drop_pair))
    assert culprit is not None
    assert (culprit.rewrite, culprit.rewrites) == (25, 40)
    assert any("Relu(m24)" in line for line in culprit.removed)
    assert len(runs) <= 10


def test_a_pipeline_that_raises_is_bisected_too():
    count = [0]

    @rule(op("Relu", var("x")))
    def raise_at_third(m, b):
        count[0] += 1
        if count[0] == 3:
            raise UsageError("E637", "the third rewrite fails")
        return b.op("Abs", b.op("Max", m["x"], b.op("Sub", m["x"], m["x"])))

    def optimize(work, limit, watching):
        count[0] = 0
        cx = PassContext.of(work)
        cx.rewrites_left = limit
        return run(cx, steps, watching)

    zeros = exact_but_zero_sign("Max chooses among zeros")
    steps = (Step(replace(wrong_pass(raise_at_third), exactness=zeros)),)
    text = "g (float[4] x) => (float[4] y) { a = Relu(x)  b = Relu(a)  y = Relu(b) }"
    culprit = bisect(model(text), optimize)
    assert culprit is not None
    assert culprit.rewrite == 3
    assert "fails" in culprit.problems[0]
