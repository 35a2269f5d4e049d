"""A target is held to what it declares, and told what its own code did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from smelt.conformance import CASES, Case, conform, conform_all
from smelt.errors import Mismatch
from smelt.ir.pattern import op, var
from smelt.ir.rule import rule
from smelt.operators.declare import Operator, Result
from smelt.runtime.runner import open_runner
from smelt.targets.base import Artifact, Limits, Plan, Target

SQUARE = Operator(
    domain="tests.declared",
    name="Square",
    inputs=("x",),
    outputs=("y",),
    infer=lambda inputs, _: (Result(inputs[0].dtype, inputs[0].shape),),
    reference=lambda inputs, _: (inputs[0] * inputs[0],),
    body=lambda b, inputs, _: (b.op("Mul", inputs[0], inputs[0]),),
)


@rule(op("Exp", var("x")))
def take_square(m, b):
    return b.op("Square", m["x"], domain="tests.declared")


def emit(plan: Plan[Any, Any]) -> Artifact:
    return Artifact("mine", plan.model, {"a": b""}, plan, {}, lambda: open_runner(plan.model))


MINE = Target(
    name="mine",
    summary="",
    emit=emit,
    limits=Limits(operators=frozenset({("", "Relu"), ("", "Neg")})),
    fallback="host",
)
RELU = Case("a Relu", "g (float[2] x) => (float[2] y) { r = Relu(x) y = Tanh(r) }")
NEG = Case("a Neg", "g (float[2] x) => (float[2] y) { y = Neg(x) }")
LEFT = Case("none of it", "g (float[2] x) => (float[2] y) { y = Cos(x) }")


def refused(target: Target, *cases: Case) -> tuple[str, ...]:
    with pytest.raises(Mismatch) as caught:
        conform_all(target, cases)
    assert caught.value.code == "E705"
    return caught.value.at


def test_results_list_executed_and_unsupported_operators() -> None:
    found = conform_all(MINE, (RELU, NEG, LEFT))
    assert found["a Relu"].outcome == "agrees"
    assert found["a Relu"].here == {"Relu": 1}
    assert list(found["a Relu"].left) == ["Tanh"]
    assert found["none of it"].outcome == "elsewhere"
    assert found["none of it"].here == {}
    assert found.ran == {"Relu", "Neg"}
    told = str(found).splitlines()
    assert told[0].startswith("a Relu      agrees     1 Relu  Tanh left: ")
    assert "of host" in told[0]
    assert told[2].startswith("none of it  elsewhere  Cos left: ")


def test_operators_declared_but_never_accepted_are_named() -> None:
    picky = replace(MINE, accepts=lambda node: node.op_type == "Relu" or "no unit for it")
    assert refused(picky, RELU, NEG) == (
        "Neg is declared, but the fallback runs it: no unit for it",
    )


def test_an_operator_that_comes_up_nowhere_is_named() -> None:
    listed = frozenset({("", "Relu"), SQUARE.key})
    own = replace(MINE, operators=(SQUARE,), limits=Limits(operators=listed))
    assert refused(own, RELU) == ("tests.declared.Square is declared, but no case has it",)


def test_an_operator_outside_of_the_limits_need_not_run() -> None:
    own = replace(MINE, operators=(SQUARE,))
    assert set(conform_all(own, (RELU, NEG))) == {"a Relu", "a Neg"}


def test_numbers_of_its_own_operators_are_compared() -> None:
    """The rule is wrong: Exp is no square."""
    listed = frozenset({SQUARE.key})
    wrong = replace(
        MINE, operators=(SQUARE,), select=(take_square,), limits=Limits(operators=listed)
    )
    case = Case("an Exp", "g (float[2] x) => (float[2] y) { e = Exp(x) y = Tanh(e) }")
    with pytest.raises(Mismatch, match="E705") as caught:
        conform(wrong, case)
    assert "E702" in caught.value.why


def running(run: Callable[..., Any]) -> Target:
    load = lambda: run  # noqa: E731
    made = lambda plan: Artifact("mine", plan.model, {"a": b""}, plan, {}, load)  # noqa: E731
    return replace(MINE, emit=made)


def test_all_cases_are_told_and_errors_of_a_run_with_their_line() -> None:
    def run(*inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        raise LookupError("no such register")

    at = refused(running(run), RELU, NEG, LEFT)
    assert [each.partition(":")[0] for each in at] == ["a Relu", "a Neg"]
    for each in at:
        assert "E653 `load` of target 'mine' fails" in each
        assert "test_declared.py:" in each
        assert "LookupError: no such register" in each


def test_an_operator_that_a_pass_made_is_told_as_that() -> None:
    """The fallback has Gemm, so a product and a sum became one before a rule for MatMul saw it."""
    limits = Limits(operators=frozenset({("", "MatMul")}))
    cases = [each for each in CASES if each.name in ("a dense layer", "a bound batch")]
    found = conform_all(replace(MINE, limits=limits), cases)
    assert found["a dense layer"].outcome == "elsewhere"
    assert (
        found["a dense layer"]
        .left["Gemm"]
        .endswith("list in `kernels` the operators of your rules")
    )
    listed = replace(MINE, limits=limits, kernels=frozenset({"MatMul", "Add", "Relu"}))
    assert conform_all(listed, cases)["a dense layer"].here == {"MatMul": 1}


def test_a_refusal_has_its_reason() -> None:
    alone = replace(MINE, fallback=None)
    found = conform_all(
        alone,
        (
            NEG,
            replace(LEFT, name="beyond"),
            replace(RELU, graph=("g (float[2] x) => (float[2] y) { y = Relu(x) }")),
        ),
    )
    assert found["beyond"].outcome == "refused"
    assert found["beyond"].why.startswith("E201 operator Cos has no kernel on target 'mine'")
    assert found["a Neg"].here == {"Neg": 1}


def test_constants_are_no_nodes_that_it_took() -> None:
    case = Case(
        "a sum",
        "g (float[2] x) => (float[2] y) { c = Constant<value_floats=[1.0,2.0]>() y = Add(x, c) }",
    )
    target = replace(MINE, limits=Limits(operators=frozenset({("", "Add"), ("", "Constant")})))
    assert conform_all(target, (case,))["a sum"].here == {"Add": 1}
