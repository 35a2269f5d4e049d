"""A vendor's own steps before and after each phase, and what each phase took."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text
from smelt.targets.backend import POINTS
from smelt.targets.base import Artifact, Plan, Target

MODEL = "g (float[4] x) => (float[4] y) { y = Neg(x) }"


def target(**more: Any) -> Target[list[ir.Node], int]:
    def schedule(plan: Plan[list[ir.Node], int]) -> None:
        plan.steps = list(plan.model.graph)

    def allocate(plan: Plan[list[ir.Node], int]) -> None:
        plan.memory = 4 * len(plan.steps)

    def emit(plan: Plan[list[ir.Node], int]) -> Artifact:
        return Artifact("vendor", plan.model, {"bytes": str(plan.memory).encode()}, plan)

    return Target(
        name="vendor", summary="", schedule=schedule, allocate=allocate, emit=emit, **more
    )


def test_steps_run_at_their_points_in_order_and_see_the_plan() -> None:
    seen: list[str] = []

    def step(point: str) -> Any:
        def note(plan: Plan[list[ir.Node], int]) -> None:
            seen.append(f"{point} {hasattr(plan, 'steps')} {hasattr(plan, 'memory')}")

        return note

    smelt.compile(text.parse(MODEL), target=target(around={p: (step(p),) for p in POINTS}))
    assert seen == [
        "before select False False",
        "after select False False",
        "before schedule False False",
        "after schedule True False",
        "before allocate True False",
        "after allocate True True",
        "before emit True True",
        "after emit True True",
    ]


def test_a_step_changes_what_later_phases_see_and_is_in_the_report() -> None:
    def twice(plan: Plan[list[ir.Node], int]) -> None:
        plan.steps = plan.steps * 2

    artifact = smelt.compile(text.parse(MODEL), target=target(around={"after schedule": (twice,)}))
    assert artifact.files["bytes"] == b"8"
    assert list(artifact.report["phases"]) == [
        *("check limits", "schedule", "after schedule: twice", "allocate", "emit"),
    ]
    assert all(seconds >= 0 for seconds in artifact.report["phases"].values())


def test_a_point_that_no_phase_has_is_refused() -> None:
    with pytest.raises(UsageError, match="after schedule") as caught:
        smelt.compile(text.parse(MODEL), target=target(around={"after scheduel": ()}))
    assert caught.value.code == "E648"
