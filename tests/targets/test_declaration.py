"""A target that cannot work is refused where it is declared, with all that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.operators.declare import Operator, Result
from smelt.program.chips.layouts import Layouts
from smelt.program.chips.memories import Memory
from smelt.targets.base import Artifact, Limits, Plan, Target
from smelt.targets.registry import find_target, target_names


def emit(plan: Plan[None, None]) -> Artifact:
    return Artifact("right", plan.model, {"nodes": b"1"}, plan)


@dataclass(frozen=True)
class NoDefault:
    level: int


SQUARE = Operator(
    domain="vendor",
    name="Square",
    inputs=("x",),
    outputs=("y",),
    infer=lambda inputs, attributes: (Result(inputs[0].dtype, inputs[0].shape),),  # type: ignore[union-attr]
    reference=lambda inputs, attributes: (inputs[0] ** 2,),  # type: ignore[operator]
)
RIGHT: dict[str, Any] = {"name": "right", "summary": "a target", "emit": emit}
SLIPS: dict[str, dict[str, Any]] = {
    "no name": {"name": ""},
    "a name that leaves its folder": {"name": "../right"},
    "no text for a summary": {"summary": None},
    "no function": {"emit": None},
    "a phase of two arguments": {"schedule": lambda plan, options: None},
    "a phase without arguments": {"allocate": lambda: None},
    "a cost of three arguments": {"cost": lambda nodes, options, plan: 0.0},
    "text for accepts": {"accepts": "Conv"},
    "limits in a mapping": {"limits": {"operators": ()}},
    "operators by name": {"operators": ("Conv",)},
    "one operator without a tuple": {"operators": "Conv"},
    "rules that are functions": {"select": (lambda m, b: None,)},
    "a rule function of no argument": {"select": lambda: ()},
    "kernels in a list": {"kernels": ["Conv"]},
    "memories by name": {"memories": ("sram",)},
    "two memories of one name": {"memories": (Memory("sram"), Memory("sram", 64))},
    "options that are no dataclass": {"options": dict},
    "options without a default": {"options": NoDefault},
    "itself as its fallback": {"fallback": "right"},
    "a target as its fallback": {"fallback": Target(**RIGHT)},
    "text for layouts": {"layouts": {"vendor::Conv": "NHWC"}},
    "text in layouts": {"layouts": {"vendor::Conv": Layouts(("NHWC",))}},  # type: ignore[arg-type]
    "element types by name": {"limits": Limits(dtypes=frozenset({"float"}))},  # type: ignore[arg-type]
    "types of ports by name": {"limits": Limits(interface_dtypes=frozenset({"float"}))},  # type: ignore[arg-type]
    "fewer dims than none": {"limits": Limits(max_rank=-1)},
    "opsets backwards": {"limits": Limits(opset=(22, 13))},
    "a tolerance that is no number": {"tolerance": float("nan")},
    "an operator twice": {"operators": (SQUARE, SQUARE)},
    "layouts of an operator that it lacks": {
        "operators": (SQUARE,),
        "layouts": {"vendor::Sqare": Layouts((None,))},
    },
    "limits of an operator that it lacks": {
        "operators": (SQUARE,),
        "limits": Limits(operators=frozenset({("vendor", "Sqare")})),
    },
    "one step without a tuple": {"around": {"after select": print}},
}
MODEL = "g (float[4] x) => (float[4] y) { y = Neg(x) }"


@pytest.mark.parametrize("slip", SLIPS.values(), ids=SLIPS.keys())
def test_a_slip_is_refused_where_it_stands(slip: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as caught:
        Target(**RIGHT | slip)
    assert caught.value.code == "E649"
    assert list(slip)[-1] in str(caught.value)


def test_all_slips_are_told_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        Target(**RIGHT | {"name": 3, "kernels": "Conv", "emit": 1})
    assert all(word in str(caught.value) for word in ("name:", "kernels:", "emit:"))


def test_operators_are_keys_and_no_names() -> None:
    with pytest.raises(UsageError, match="'Conv' is not a pair \\(domain, op_type\\)"):
        Target(**RIGHT | {"extensions": frozenset({"Conv"})})


@pytest.mark.parametrize("name", target_names())
def test_ours_are_declared_right(name: str) -> None:
    assert find_target(name).name == name


@pytest.mark.parametrize("made", [None, {"listing": b""}])
def test_emit_returns_an_artifact(made: Any) -> None:
    wrong = Target(**RIGHT | {"emit": lambda plan: made})
    with pytest.raises(UsageError, match="`emit` of target 'right' returned no Artifact"):
        smelt.compile(text.parse(MODEL), target=wrong)


def test_a_forgotten_return_of_accepts_is_told() -> None:
    forgetful = Target(**RIGHT | {"accepts": lambda node: None})
    with pytest.raises(UsageError, match="`accepts` of target 'right' returned None"):
        smelt.compile(text.parse(MODEL), target=forgetful)


def test_a_rule_function_that_returns_no_rules_is_named() -> None:
    target = Target(**RIGHT | {"select": lambda options: None})
    with pytest.raises(UsageError, match=r"E649 `select` of target 'right' returned None"):
        smelt.compile(text.parse(MODEL), target=target)


def test_kernels_that_onnx_has_not_are_named() -> None:
    target = Target(**RIGHT | {"kernels": frozenset({"Neg", "Convv"})})
    with pytest.warns(UserWarning, match="no operator 'Convv'; did you mean 'Conv'"):
        smelt.compile(text.parse(MODEL), target=target)


def test_the_limits_of_an_operator_that_it_lacks_name_the_nearest() -> None:
    limits = Limits(operators=frozenset({("vendor", "Sqare"), ("elsewhere", "Sqare")}))
    with pytest.raises(UsageError) as caught:
        Target(**RIGHT | {"operators": (SQUARE,), "limits": limits})
    told = "limits.operators: vendor has no operator 'Sqare'; did you mean 'Square'?"
    assert caught.value.at == (told,)


def test_limits_of_what_onnx_has_not_are_a_warning() -> None:
    limits = Limits(operators=frozenset({("", "Neg"), ("", "Negg")}))
    target = Target(**RIGHT | {"limits": limits})
    with pytest.warns(UserWarning, match="`limits.operators` of target 'right'.*'Negg'"):
        smelt.compile(text.parse(MODEL), target=target)
