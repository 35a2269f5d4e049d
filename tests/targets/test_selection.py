"""A vendor's rules: compounds first, benefits, options, and rules that never get their turn."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import pytest

import smelt
from smelt.errors import InternalError
from smelt.ir import text
from smelt.ir.build import Builder
from smelt.ir.pattern import op, var
from smelt.ir.rule import Match, Miss, Replacement, Rule, rule
from smelt.operators.declare import Attributes, Operator, Result
from smelt.targets.base import Artifact, Plan, Target
from smelt.targets.selection import select, warn_of_unknown_kernels

DOMAIN = "vendor.selection"


def like_first(inputs: Any, attributes: Attributes) -> tuple[Result, ...]:
    return (Result(inputs[0].dtype, inputs[0].shape),)


def declared(name: str) -> Operator:
    return Operator(
        domain=DOMAIN,
        name=name,
        inputs=("x",),
        outputs=("y",),
        infer=like_first,
        reference=lambda inputs, attributes: (inputs[0],),
    )


@rule(op("Exp", var("x")))
def take_exp(m: Match, b: Builder) -> Replacement:
    return b.op("Exp", m["x"], domain=DOMAIN)


@rule(op("Relu", op("Exp", var("x"))))
def take_exp_relu(m: Match, b: Builder) -> Replacement:
    return b.op("ExpRelu", m["x"], domain=DOMAIN)


@rule(op("Neg", op("Exp", var("x"), domain=DOMAIN)))
def take_own_exp_neg(m: Match, b: Builder) -> Replacement:
    return b.op("ExpNeg", m["x"], domain=DOMAIN)


def emit(plan: Plan) -> Artifact:
    names = " ".join(node.op_type for node in plan.model.graph)
    return Artifact("vendor", plan.model, {"names.txt": names.encode()}, plan)


def vendor(*rules: Rule) -> Target:
    operators = tuple(map(declared, ("Exp", "ExpRelu", "ExpNeg")))
    return Target(name="vendor", summary="", emit=emit, operators=operators, select=rules)


OPERATORS = vendor().operators


def selected(target: Target, body: str = "a = Exp(x) y = Relu(a)", **options: Any) -> Artifact:
    model = text.parse(f"g (float[4] x) => (float[4] y) {{ {body} }}")
    target = replace(target, operators=OPERATORS)
    return smelt.compile(model, target=target, pipeline="", **options)


@pytest.mark.parametrize("rules", [(take_exp, take_exp_relu), (take_exp_relu, take_exp)])
def test_a_compound_goes_before_its_parts_in_any_order(rules: tuple[Rule, ...]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        artifact = selected(vendor(*rules))
    assert artifact.files["names.txt"] == b"ExpRelu"
    assert artifact.report["select"] == {"fired": {"take_exp_relu": 1}, "near_misses": []}


def test_a_part_whose_result_is_read_elsewhere_is_taken_alone() -> None:
    artifact = selected(vendor(take_exp, take_exp_relu), "a = Exp(x) r = Relu(a) y = Add(a, r)")
    assert artifact.files["names.txt"] == b"Exp Relu Add"


def test_a_rule_that_others_leave_nothing_is_named() -> None:
    greedy = replace(take_exp, benefit=10)
    with pytest.warns(
        UserWarning,
        match="take_exp_relu never fired: it matches at 'Relu', but take_exp took its node",
    ):
        artifact = selected(vendor(take_exp_relu, greedy))
    assert artifact.files["names.txt"] == b"Exp Relu"
    (miss,) = artifact.report["select"]["near_misses"]
    assert miss["rule"] == "take_exp_relu"
    assert miss["reason"] == "take_exp took its node first"


def test_a_rule_that_refused_by_itself_is_not_called_shadowed() -> None:
    @rule(op("Relu", op("Exp", var("x"))))
    def never(m: Match, b: Builder) -> Replacement:
        return Miss("the moon is full")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        artifact = selected(vendor(take_exp, never))
    assert artifact.files["names.txt"] == b"Exp Relu"
    assert [miss["reason"] for miss in artifact.report["select"]["near_misses"]] == [
        "the moon is full"
    ]


def test_a_compound_of_own_operators_fires_after_its_parts_were_made() -> None:
    artifact = selected(vendor(take_own_exp_neg, take_exp), "a = Exp(x) y = Neg(a)")
    assert artifact.files["names.txt"] == b"ExpNeg"


def test_rules_that_undo_each_other_end() -> None:
    @rule(op("Exp", var("x"), domain=DOMAIN), benefit=9)
    def give_back(m: Match, b: Builder) -> Replacement:
        return b.op("Exp", m["x"])

    with pytest.raises(InternalError, match=r"give_back|take_exp") as caught:
        selected(vendor(take_exp, give_back))
    assert caught.value.code == "E903"


@dataclass(frozen=True)
class Options:
    fuse: bool = True


def test_options_choose_the_rules() -> None:
    target = replace(
        vendor(),
        options=Options,
        select=lambda own: (take_exp_relu, take_exp) if own.fuse else (take_exp,),
    )
    assert selected(target).files["names.txt"] == b"ExpRelu"
    assert selected(target, fuse=False).files["names.txt"] == b"Exp Relu"


def test_the_size_of_a_pattern_is_its_nodes() -> None:
    assert (take_exp.size, take_exp_relu.size) == (1, 2)


def test_a_rule_for_an_operator_that_onnx_never_had_is_named() -> None:
    misspelt = rule(op("Relu", op("Convv", var("x"), var("w"))), name="misspelt")(nothing)
    with pytest.warns(UserWarning, match="misspelt can never fire.*'Convv'.*'Conv'"):
        select(text.parse(PLAIN), [misspelt])


def test_a_kernel_for_an_operator_that_onnx_never_had_is_named(
    recwarn: pytest.WarningsRecorder,
) -> None:
    warn_of_unknown_kernels("npu", "kernels", {"Relu", "ai.onnx.ml::Scaler", "com.npu::Rellu"})
    assert not recwarn.list
    with pytest.warns(UserWarning, match="`kernels` of target 'npu': .*'Rellu'; .*'Relu'"):
        warn_of_unknown_kernels("npu", "kernels", {"Rellu"})


def test_one_of_two_rules_for_the_same_is_named() -> None:
    first, second = (
        rule(op("Relu", var("x")), name=name)(lambda m, b: b.op("Abs", m["x"]))
        for name in ("first", "second")
    )
    with pytest.warns(UserWarning, match="second never fired.*first took its node first"):
        select(text.parse(PLAIN), [first, second])


PLAIN = "g (float[3] x) => (float[3] y) { y = Relu(x) }"


def nothing(m: Match, b: Builder) -> Replacement:
    return None
