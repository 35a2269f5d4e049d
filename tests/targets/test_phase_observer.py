"""Phases are watched: what each made is printed, or checked."""

import pytest

import smelt
from smelt.check.print_phases import PrintPhases, wanted_phases
from smelt.errors import InternalError, UsageError
from smelt.ir import text
from smelt.targets.c import c
from smelt.targets.phase_observer import PHASES, observe_phases, verify_phase

MODEL = "g (float[4,4] x) => (float[4,4] y) { a = Exp(x) b = Tanh(a) y = MatMul(a, b) }"


def printed(phases: str, limit: int = 0, **options) -> str:
    lines: list[str] = []
    with observe_phases(PrintPhases(lines.append, wanted_phases(phases), limit)):
        smelt.compile(text.parse(MODEL), target="c", **options)
    return "\n".join(lines)


def test_each_phase_prints_what_it_made() -> None:
    shown = printed("all")
    heads = [line for line in shown.splitlines() if line.startswith("***")]
    assert heads == [f"*** c: after {phase} ***" for phase in PHASES]
    assert "0: %1: 'a' float[4,4] = Exp(%0)" in shown
    assert "arena 640 bytes" in shown
    assert "arena_bytes: 640" in shown


def test_phases_are_chosen_by_name_and_lines_cut() -> None:
    assert "after allocate" not in printed("schedule")
    assert "more lines" in printed("schedule", limit=1)
    with pytest.raises(UsageError, match="did you mean 'schedule'"):
        wanted_phases("scheduel")


def test_a_phase_that_breaks_the_program_is_told() -> None:
    from dataclasses import replace

    def backwards(plan) -> None:
        c.schedule(plan)
        plan.steps.instructions.reverse()

    broken = replace(c, schedule=backwards)
    with observe_phases(verify_phase), pytest.raises(InternalError) as caught:
        smelt.compile(text.parse(MODEL), target=broken)
    assert caught.value.code == "E963"


def test_our_phases_are_right() -> None:
    with observe_phases(verify_phase):
        smelt.compile(text.parse(MODEL), target="c")


def test_steps_around_selection_see_the_graph_and_the_options() -> None:
    from dataclasses import replace

    seen: list[tuple[int, str]] = []

    def note(plan) -> None:
        seen.append((len(plan.model.graph), plan.options.name))

    steps = {"before select": (note,), "after select": (note,)}
    smelt.compile(text.parse(MODEL), target=replace(c, around=steps), name="digits")
    assert seen == [(3, "digits")] * 2
