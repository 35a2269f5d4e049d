"""Options of targets are those that a target declares; every other one is refused."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import smelt
from smelt.ir import text
from smelt.targets.base import Artifact, Plan, Target
from smelt.targets.options import read_options

GRAPH = "g (float[2] x) => (float[2] y) { y = Relu(x) }"


def emit(plan: Plan) -> Artifact:
    return Artifact("mine", plan.model, {}, plan)


@dataclass(frozen=True)
class Mine:
    title: str = ""
    width: int | None = None
    scale: float = 1.0
    loud: bool = False
    names: tuple[str, ...] = ()


BARE = Target("bare", "a target without options", emit)
OWN = Target("own", "a target with options", emit, options=Mine)


@pytest.mark.parametrize("target", ["onnx", "host", "c", BARE, OWN])
def test_unknown_options_are_refused(target: str | Target) -> None:
    with pytest.raises(smelt.SmeltError, match=r"E660.*has no option 'foo'"):
        smelt.compile(text.parse(GRAPH), target=target, foo=1)


@pytest.mark.parametrize(
    "given",
    [
        *({"title": 1}, {"width": "2"}, {"width": True}, {"scale": "1"}, {"scale": True}),
        *({"loud": 1}, {"names": "a"}),
    ],
)
def test_values_of_another_type_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(smelt.SmeltError, match="E660"):
        read_options(OWN, given)


def test_values_reach_the_plan() -> None:
    given = {"title": "t", "width": 2, "scale": 3, "loud": True, "names": ("a",)}
    plan = smelt.compile(text.parse(GRAPH), target=OWN, **given).plan
    assert plan.options == Mine("t", 2, 3, True, ("a",))
    assert read_options(OWN, {"width": None}) == Mine()
    assert smelt.compile(text.parse(GRAPH), target=BARE).plan.options is None


def test_a_typo_is_told() -> None:
    with pytest.raises(smelt.SmeltError, match="did you mean 'title'"):
        read_options(OWN, {"tilte": "x"})


@pytest.mark.parametrize("name", ["", "..", "a/b", "../up", "a\\b", "c:d", "a\0b"])
@pytest.mark.parametrize("target", ["onnx", "c"])
def test_names_that_leave_the_folder_are_refused(target: str, name: str) -> None:
    with pytest.raises(smelt.SmeltError, match="E660"):
        smelt.compile(text.parse(GRAPH), target=target, name=name)
