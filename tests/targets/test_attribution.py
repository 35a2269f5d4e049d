"""A mistake in a function of a target is told as one of that target, with file and line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.ir.pattern import op, var
from smelt.ir.rule import rule
from smelt.operators.declare import Operator, Result
from smelt.runtime.runner import open_runner
from smelt.targets.base import Artifact, Limits, Plan, Target

MODEL = "g (float[N,3] x) => (float[N,3] y) { a = Neg(x) b = Relu(a) y = Tanh(b) }"
X = np.ones((2, 3), np.float32)


def emit(plan: Plan[Any, Any]) -> Artifact:
    return Artifact("mine", plan.model, {"a": b""}, plan, {}, lambda: open_runner(plan.model))


def running(run: Callable[..., Any]) -> dict[str, Any]:
    load = lambda: run  # noqa: E731
    return {"emit": lambda plan: Artifact("mine", plan.model, {"a": b""}, plan, {}, load)}


TARGET = Target(
    name="mine",
    summary="",
    emit=emit,
    limits=Limits(operators=frozenset({("", "Neg"), ("", "Relu")})),
    fallback="host",
)


def slip(*given: object) -> Any:
    raise LookupError("no such register")


@pytest.mark.parametrize(
    "changed",
    [
        {"accepts": slip},
        {"cost": slip},
        {"select": slip},
        {"schedule": slip},
        {"allocate": slip},
        {"emit": slip},
        {"around": {"before select": (slip,)}},
        {"around": {"after emit": (slip,)}},
        {"select": (rule(op("Relu", var("x")))(slip),)},
        {"emit": lambda plan: Artifact("mine", plan.model, {}, plan, {}, slip)},
        running(slip),
    ],
)
def test_an_error_of_python_names_target_and_line(changed: dict[str, Any]) -> None:
    with pytest.raises(SmeltError, match="no such register") as caught:
        smelt.compile(text.parse(MODEL), target=replace(TARGET, **changed))(X)
    assert caught.value.code == "E653"
    assert "test_attribution.py" in caught.value.at[0]
    assert "slip" in str(caught.value) or "mine" in str(caught.value)


@pytest.mark.parametrize("price", [float("nan"), None, "cheap"])
def test_a_cost_is_a_number(price: Any) -> None:
    with pytest.raises(SmeltError, match="`cost` of target 'mine' returned"):
        smelt.compile(text.parse(MODEL), target=replace(TARGET, cost=lambda nodes: price))


@pytest.mark.parametrize("price", [-3, float("-inf"), np.float32(0)])
def test_a_cost_of_nothing_or_less_is_taken(price: Any) -> None:
    artifact = smelt.compile(text.parse(MODEL), target=replace(TARGET, cost=lambda nodes: price))
    assert artifact.plan.facts["nodes on mine"] == 2


@pytest.mark.parametrize("files", [{"../a": b""}, {"/a": b""}, {"a": "text"}])
def test_files_that_no_folder_can_hold_are_refused(files: Any) -> None:
    wrong = replace(TARGET, emit=lambda plan: Artifact("mine", plan.model, files, plan))
    with pytest.raises(SmeltError, match="cannot be written"):
        smelt.compile(text.parse(MODEL), target=wrong)


@pytest.mark.parametrize(
    ("results", "why"),
    [
        ((), "0 results for 1 outputs"),
        (X, "no tuple"),
        ((X.astype(np.float64),), "float64"),
        ((X[:, :2],), r"float32\[2,2\]"),
    ],
)
def test_results_that_do_not_fit_the_model_are_refused(results: Any, why: str) -> None:
    artifact = smelt.compile(
        text.parse(MODEL), target=replace(TARGET, **running(lambda x: results))
    )
    with pytest.raises(SmeltError, match=why) as caught:
        artifact(X)
    assert caught.value.code == "E653"


def test_inputs_that_do_not_fit_the_model_or_its_bounds_are_refused() -> None:
    whole = replace(TARGET, limits=Limits(dynamic_dims=False, bounded_dims=True), fallback=None)
    artifact = smelt.compile(text.parse(MODEL), target=whole, dims={"N": (1, 4)})
    np.testing.assert_array_equal(artifact(X)[0], np.zeros((2, 3), np.float32))
    for wrong, code in (
        (X[:, :2], "E632"),
        (X.astype(np.int32), "E632"),
        (np.ones((5, 3)), "E632"),
    ):
        with pytest.raises(SmeltError) as caught:
            artifact(wrong)
        assert caught.value.code == code
    with pytest.raises(SmeltError, match="N=5 is not from 1 to 4"):
        artifact(np.ones((5, 3), np.float32))


@pytest.mark.parametrize(("budget", "taken"), [(100, 2), (3, 0)])
def test_accepts_and_cost_may_see_the_options(budget: int, taken: int) -> None:
    @dataclass(frozen=True)
    class Options:
        budget: int = 0
        dear: bool = False

    seeing = replace(
        TARGET,
        options=Options,
        accepts=lambda node, options: node.outputs[0].shape.numpy()[1] < options.budget,
        cost=lambda nodes, options: options.dear,
    )
    sized = text.parse(MODEL.replace("[N", "[2"))
    artifact = smelt.compile(sized, target=seeing, budget=budget)
    assert artifact.plan.facts["nodes on mine"] == taken
    artifact = smelt.compile(sized, target=seeing, budget=budget, dear=True)
    assert artifact.plan.facts["nodes on mine"] == 0


def drop(plan: Plan[Any, Any]) -> None:
    plan.model.graph.remove(next(n for n in plan.model.graph if n.op_type == "Relu"))


def retype(plan: Plan[Any, Any]) -> None:
    plan.model.graph.outputs[0].dtype = ir.DataType.FLOAT16


def forget_outputs(plan: Plan[Any, Any]) -> None:
    plan.model.graph.outputs.clear()


def exchange(plan: Plan[Any, Any]) -> None:
    plan.model = plan.model.clone()


@pytest.mark.parametrize("point", ["before select", "after select", "before schedule"])
@pytest.mark.parametrize("step", [drop, retype, forget_outputs, exchange])
def test_a_step_that_breaks_the_graph_is_named(point: str, step: Any) -> None:
    whole = replace(TARGET, limits=Limits(), around={point: (step,)})
    with pytest.raises(SmeltError, match=f"the step {step.__name__} {point} of target 'mine'"):
        smelt.compile(text.parse(MODEL), target=whole)


ACT = Operator(
    domain="blamed",
    name="Act",
    inputs=("x",),
    outputs=("y",),
    infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),  # type: ignore[union-attr]
    reference=lambda inputs, attributes: (np.maximum(inputs[0], 0),),  # type: ignore[call-overload]
)


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (lambda m, b: 5, "neither values nor a Miss"),
        (lambda m, b: b.op("Act", m["x"], m["x"], domain="blamed"), r"inputs are \(x\)"),
        (lambda m, b: b.op("Act", domain="blamed"), r"inputs are \(x\)"),
        (lambda m, b: b.op("Act", m["x"], domain="blamed", beta=1), "no attribute 'beta'"),
    ],
)
def test_a_rule_builds_what_is_declared(build: Any, why: str) -> None:
    wrong = replace(TARGET, operators=(ACT,), select=(rule(op("Relu", var("x")))(build),))
    with pytest.raises(SmeltError, match=why):
        smelt.compile(text.parse(MODEL), target=wrong)


NUMBERS = count()


def declared(**changed: Any) -> Operator:
    """An operator with a name of its own."""
    fields: dict[str, Any] = {
        "domain": "tests.blaming",
        "name": f"Same{next(NUMBERS)}",
        "inputs": ("x",),
        "outputs": ("y",),
        "infer": lambda inputs, _: (Result(inputs[0].dtype, inputs[0].shape),),
        "reference": lambda inputs, _: (inputs[0],),
        "body": lambda b, inputs, _: (b.op("Identity", inputs[0]),),
    }
    return Operator(**fields | changed)


def left_to_fallback(operator: Operator, fallback: str = "c") -> None:
    """Compile a model in which ``operator`` stands for Neg, and goes to the fallback."""

    @rule(op("Neg", var("x")))
    def take(m: Any, b: Any) -> Any:
        return b.op(operator.name, m["x"], domain=operator.domain)

    target = replace(
        TARGET,
        operators=(operator,),
        select=(take,),
        limits=Limits(operators=frozenset({operator.key})),
        accepts=lambda node: "no room",
        fallback=fallback,
    )
    smelt.compile(text.parse(MODEL.replace("[N", "[2")), target=target)


@pytest.mark.filterwarnings("ignore::smelt.targets.phases.NothingTaken")
@pytest.mark.parametrize(
    ("body", "code", "why"),
    [
        (lambda b, inputs, _: b.nothing, "E653", "no attribute 'nothing'"),
        (lambda b, inputs, _: 3, "E646", "it returned 3"),
        (lambda b, inputs, _: (3,), "E646", r"it returned \(3,\)"),
        (
            lambda b, inputs, _: (b.op("Unsqueeze", inputs[0], b.const_i64([0])),),
            "E646",
            r"gives FLOAT\[1,2,3\] for '\w+', and `infer` FLOAT\[2,3\]",
        ),
        (
            lambda b, inputs, _: (b.op("Cast", inputs[0], to=11),),
            "E646",
            r"gives DOUBLE\[2,3\] for '\w+', and `infer` FLOAT\[2,3\]",
        ),
    ],
)
def test_a_body_that_is_wrong_is_told_as_that(body: Any, code: str, why: str) -> None:
    with pytest.raises(SmeltError, match=why) as caught:
        left_to_fallback(declared(body=body))
    assert caught.value.code == code


@pytest.mark.filterwarnings("ignore::smelt.targets.phases.NothingTaken")
def test_an_operator_without_a_body_cannot_be_left_to_others() -> None:
    with pytest.raises(SmeltError, match=r"no room\), and the operator has no body") as caught:
        left_to_fallback(declared(body=None))
    assert caught.value.code == "E201"


def test_a_rule_that_makes_what_nobody_declared_is_named_with_it() -> None:
    @rule(op("Neg", var("x")))
    def take(m: Any, b: Any) -> Any:
        return b.op("Undeclared", m["x"], domain="tests.blaming")

    target = replace(TARGET, select=(take,), limits=Limits(operators=frozenset({("", "Sin")})))
    with pytest.warns(UserWarning, match=r"tests\.blaming\.Undeclared gives no shape"):
        smelt.compile(text.parse(MODEL), target=target)


def test_an_operator_of_its_own_outside_of_its_limits_is_told_as_that() -> None:
    operator = declared()

    @rule(op("Neg", var("x")))
    def take(m: Any, b: Any) -> Any:
        return b.op(operator.name, m["x"], domain=operator.domain)

    target = replace(TARGET, operators=(operator,), select=(take,), fallback="host")
    artifact = smelt.compile(text.parse(MODEL), target=target)
    told = {entry["operator"]: entry["why"] for entry in artifact.report["elsewhere"]}
    name = f"{operator.domain}.{operator.name}"
    assert (
        told[name] == "`limits.operators` of 'mine' does not list this operator of its own domain"
    )
