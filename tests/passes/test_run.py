"""Pipelines run in order, stop when nothing changes, and report what they did."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from smelt import optimize
from smelt.ir import text
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rewrite import Rewriter
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.worklist import RuleStats
from smelt.passes.base import PassContext, graph_pass, rule_pass
from smelt.passes.cleanup.dead_code_elimination import dead_code_elimination
from smelt.passes.pipeline import Fixpoint, Step, Steps
from smelt.passes.run import PassReport, count_nodes, run

GRAPH = "g (float[2] x) => (float[2] y) { a = Neg(x) b = Neg(a) c = Neg(b) d = Neg(c) y = Abs(d) }"


@rule(op("Neg", op("Neg", var("x"))))
def double_negation(m: Match, b: Builder) -> Replacement:
    return m["x"]


@rule(op("Abs", var("x")))
def refuse(m: Match, b: Builder) -> Replacement:
    return Miss("never")


negations = rule_pass("negations", "Negations.", [double_negation])
refusing = rule_pass("refusing", "Refuses.", [refuse])


@graph_pass("one_at_a_time", "Drops the first of two negations.")
def one_at_a_time(cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: None) -> None:
    for node in () if rewriter.exhausted else cx.model.graph:
        inner = node.inputs[0].producer() if node.inputs[0] is not None else None
        if node.op_type == "Neg" and inner is not None and inner.op_type == "Neg":
            rewriter.replace(node, [inner.inputs[0]])
            return


def reports(*steps: Step | Fixpoint, limit: int | None = None) -> list[PassReport]:
    cx = PassContext.of(text.parse(GRAPH))
    cx.rewrites_left = limit
    return run(cx, steps)


def test_a_report_says_what_a_pass_did() -> None:
    [report] = reports(Step(negations))
    assert (report.name, report.text, report.changed) == ("negations", "negations", True)
    assert (report.nodes_before, report.nodes_after) == (5, 1)
    assert report.stats.fired == {"double_negation": 2}
    assert report.seconds >= 0


def test_near_misses_are_reported_with_a_node() -> None:
    [report] = reports(Step(refusing))
    assert not report.changed
    [miss] = report.to_json()["near_misses"]
    assert (miss["rule"], miss["why"], miss["count"]) == ("refuse", "never", 1)


def test_a_fixpoint_ends_when_nothing_changes() -> None:
    found = reports(Fixpoint((Step(one_at_a_time),), 8))
    assert [report.changed for report in found] == [True, True, False]


def test_a_fixpoint_ends_after_its_rounds() -> None:
    assert len(reports(Fixpoint((Step(one_at_a_time),), 1))) == 1


def test_a_pass_of_rules_is_not_asked_again_before_something_else_changed() -> None:
    found = reports(Step(negations), Step(negations))
    assert [report.name for report in found] == ["negations"]
    twice = Fixpoint((Step(negations), Step(refusing)), 8)
    assert [report.name for report in reports(twice)] == ["negations", "refusing"]


def test_dims_are_counted_anew_where_values_have_become_one() -> None:
    """Both NonZero are merged in the end, so both Gathers have one size and can be stacked."""
    model = text.parse(
        """g (float[A] x, float[P] p, float[Q] q) => (float[1,K] y) <int64[1] zero = {0},
        int64 one = {1}> { m = NonZero(x) n = NonZero(x) u = Gather(p, m) v = Gather(q, n)
        a = Unsqueeze(u, zero) b = Unsqueeze(v, zero) s = Concat<axis=0>(a, b)
        y = Gather(s, one) }"""
    )
    assert [node.op_type for node in optimize(model).graph] == ["NonZero", "Gather"]


STEPS: dict[str, Steps] = {
    "passes": (Step(negations), Step(refusing)),
    "a fixpoint": (Fixpoint((Step(refusing), Step(one_at_a_time)), 2),),
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())
def test_observers_stand_around_every_pass(steps: Steps) -> None:
    class Watching:
        seen: list[str]

        def __init__(self) -> None:
            self.seen = []

        def before_pass(self, step: Step, model: ir.Model) -> None:
            self.seen.append(f"before {step} {count_nodes(model)}")

        def after_pass(self, step: Step, model: ir.Model, report: PassReport) -> None:
            assert report.nodes_after == count_nodes(model)
            self.seen.append(f"after {step} {report.nodes_before}")

    watching = Watching()
    found = run(PassContext.of(text.parse(GRAPH)), steps, [watching])
    expected = [
        line
        for report in found
        for line in (
            f"before {report.text} {report.nodes_before}",
            f"after {report.text} {report.nodes_before}",
        )
    ]
    assert watching.seen == expected


def test_a_limit_holds_for_the_whole_run() -> None:
    found = reports(Step(negations), Step(one_at_a_time), limit=1)
    assert sum(report.stats.rewrites for report in found) == 1
    assert found[-1].nodes_after == 3


def test_nodes_of_branches_and_functions_count() -> None:
    model = text.parse(
        '<ir_version: 10, opset_import: ["" : 23, "f" : 1]>'
        "g (bool c, float[2] x) => (float[2] y) { a = f.F(x) y = If(c) <"
        "then_branch = t () => (float[2] u) { u = Neg(a) }, "
        "else_branch = e () => (float[2] v) { v = Abs(a) }> }"
        '<domain: "f", opset_import: ["" : 23]> F (x) => (y) { y = Neg(x) }'
    )
    assert count_nodes(model) == 5


def test_a_dropped_constant_brings_no_pass_back() -> None:
    """No pass can notice that an unread constant is gone."""
    cx = PassContext.of(text.parse(GRAPH.replace("{", "<float w = {1}> {", 1)))
    group = Fixpoint((Step(refusing), Step(dead_code_elimination)), rounds=4)
    reports = run(cx, (group,))
    assert [report.name for report in reports if report.changed] == ["dead_code_elimination"]
    assert [report.name for report in reports].count("refusing") == 1
