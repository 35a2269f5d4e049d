"""Every pass is where its name says, documents itself, and is found under any spelling."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from smelt.errors import UsageError
from smelt.passes import registry
from smelt.passes.base import Pass
from smelt.passes.pipeline import Fixpoint, Steps, parse
from smelt.passes.pipelines import STAGES
from smelt.registry import Owner

OURS = dict(registry.own_passes())


@pytest.mark.parametrize("place", OURS, ids=[place.rpartition(".")[2] for place in OURS])
def test_a_pass_is_named_like_its_file_and_has_a_page(place: str) -> None:
    pass_ = OURS[place]
    assert pass_.name == place.rpartition(".")[2]
    assert pass_.page == import_module(place).__doc__
    assert pass_.summary
    assert {"Needs", "Keeps"} <= {line.split(" ")[0] for line in pass_.page.splitlines()}


def test_each_file_that_makes_a_pass_is_found() -> None:
    files = Path(registry.__file__).parent.glob("*/*.py")
    making = {
        file.stem
        for file in files
        if re.search(r"^(@graph|\w+ = rule)_pass", file.read_text("utf-8"), re.M)
    }
    assert making == {pass_.name for pass_ in OURS.values()}


def test_names_are_found_with_hyphens_or_underscores() -> None:
    found = registry.find_pass("dead-code-elimination")
    assert found is registry.find_pass("dead_code_elimination")
    assert found.spelling == "dead-code-elimination"


def test_a_typing_error_is_met_with_a_proposal() -> None:
    with pytest.raises(UsageError) as caught:
        registry.find_pass("dead-code-eliminatoin")
    assert caught.value.code == "E601"
    assert "dead-code-elimination" in str(caught.value)


def test_two_passes_of_one_name_are_refused() -> None:
    one = registry.find_pass("noop-elimination")
    with pytest.raises(UsageError) as caught:
        registry.PASSES.add("noop_elimination", replace(one), Owner("theirs:one", "theirs 1.0"))
    assert caught.value.code == "E605"
    ours = "smelt.passes.simplify.noop_elimination"
    assert caught.value.at == (ours, "theirs:one (package theirs 1.0)")


def flat(steps: Steps) -> list[Pass]:
    return [
        pass_
        for step in steps
        for pass_ in (flat(step.steps) if isinstance(step, Fixpoint) else [step.pass_])
    ]


@pytest.mark.parametrize("stage", sorted(STAGES.keys() - {"default", "O1", "O2", "O3"}))
def test_stages_name_passes_once_each(stage: str) -> None:
    names = [pass_.name for pass_ in flat(parse(stage))]
    assert len(set(names)) == len(names)


def test_the_default_pipeline_changes_no_meaning() -> None:
    for pass_ in flat(parse("default")):
        assert pass_.default
        assert pass_.exactness.kind in ("exact", "rounding")


def test_passes_that_must_come_first_or_later_exist() -> None:
    known = registry.passes()
    for pass_ in known.values():
        assert {*pass_.after, *pass_.before} <= known.keys()
