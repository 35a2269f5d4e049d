"""The memory plan: nothing that is live at once overlaps, and little more than the bound is used."""

from __future__ import annotations

import json
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import NETWORKS, Draft

import smelt
from smelt.errors import Unsupported
from smelt.ir import text
from smelt.program.chips.memories import Memory, plan_spaces
from smelt.program.instruction import Instruction, Program
from smelt.program.lower import lower
from smelt.program.memory import MemoryPlan, plan_memory
from smelt.program.storage import Needs, Owner


def check(plan: MemoryPlan) -> None:
    """What every plan owes."""
    spans = list(zip(plan.assignment.arena, plan.offsets, strict=True))
    for i, (a, at) in enumerate(spans):
        assert at % plan.alignment == 0
        assert at + a.size <= plan.arena_bytes
        for b, bt in spans[:i]:
            for (first, last, size), (start, stop, other) in product(a.spans(), b.spans()):
                together = first <= stop and start <= last
                apart = at + size <= bt or bt + other <= at
                assert not together or apart or 0 in (size, other), (a, b)
    assert plan.arena_bytes >= plan.bound_bytes


@st.composite
def programs(draw: st.DrawFn) -> tuple[Program, dict[int, Needs]]:
    """Programs whose instructions read any earlier values, with views, in-place steps and scratch."""
    sizes = st.sampled_from([0, 1, 15, 16, 17, 64, 100, 1000])
    draft = Draft(*draw(st.lists(sizes, min_size=1, max_size=2)))
    needs: dict[int, Needs] = {}
    for _ in range(draw(st.integers(1, 25))):
        known = list(range(len(draft.program.slots)))
        inputs = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3))
        kind = draw(st.sampled_from(["plain", "view", "in place", "over", "scratch"]))
        size = draw(sizes)
        if kind in ("view", "in place"):
            size = draft.program.slots[inputs[0]].size
        if kind == "over":
            size = draw(st.integers(0, draft.program.slots[inputs[0]].size))
        result = draft.step(size, *inputs)
        if kind == "over":
            needs[result] = Needs(over=(0,))
        if kind == "view":
            needs[result] = Needs(view_of=0)
        elif kind == "in place":
            needs[result] = Needs(in_place=tuple(range(len(inputs)))[:2])
        elif kind == "scratch":
            needs[result] = Needs(workspace=draw(st.integers(0, 300)))
    outputs = draw(
        st.lists(st.sampled_from(range(len(draft.program.slots))), min_size=1, max_size=3)
    )
    return draft.done(*outputs), needs


def needs_from(needs: dict[int, Needs]):
    return lambda instruction: needs.get(instruction.outputs[0], Needs())


@settings(deadline=None, max_examples=150)
@given(programs(), st.booleans())
def test_simultaneously_live_storages_are_disjoint(case, outputs_in_arena: bool) -> None:
    program, needs = case
    check(plan_memory(program, needs_from(needs), outputs_in_arena=outputs_in_arena))


@settings(deadline=None, max_examples=150)
@given(programs())
def test_every_value_survives_until_it_is_read(case) -> None:
    """Execute the plan on bytes: each storage remembers which value it holds."""
    program, needs = case
    plan = plan_memory(program, needs_from(needs))
    of_slot = plan.assignment.of_slot
    holds: dict[int, int] = {}
    same: dict[int, int] = {}
    for slot in (*program.inputs, *program.constants):
        holds[id(of_slot[slot])] = slot
    for instruction in program.instructions:
        (result,) = instruction.outputs
        for slot in instruction.inputs:
            value = same.get(slot, slot)
            assert holds[id(of_slot[slot])] == value, "overwritten before it was read"
        if needs.get(result, Needs()).view_of == 0:
            source = instruction.inputs[0]
            same[result] = same.get(source, source)
        else:
            holds[id(of_slot[result])] = result
    copied = dict(plan.assignment.copies)
    for index, slot in enumerate(program.outputs):
        storage = of_slot[slot]
        assert holds[id(storage)] == same.get(slot, slot), "an output was overwritten"
        assert index in copied or (storage.owner, storage.index) == (Owner.OUTPUT, index)


@pytest.mark.parametrize("name", NETWORKS)
def test_realistic_networks_reach_the_lower_bound(name: str) -> None:
    plan = plan_memory(NETWORKS[name])
    check(plan)
    assert plan.arena_bytes <= 1.02 * plan.bound_bytes


def test_inputs_and_constants_are_never_overwritten() -> None:
    draft = Draft(100)
    y = draft.step(100, draft.program.inputs[0])
    plan = plan_memory(draft.done(y), lambda instruction: Needs(in_place=(0,)))
    assert plan.assignment.of_slot[y].owner is Owner.OUTPUT
    assert plan.assignment.of_slot[0].owner is Owner.INPUT


def test_a_dying_input_is_overwritten_in_place() -> None:
    draft = Draft(100)
    a = draft.step(100, 0)
    b = draft.step(100, a)
    y = draft.step(1, b)
    plan = plan_memory(draft.done(y), lambda instruction: Needs(in_place=(0,)))
    assert plan.assignment.of_slot[a] is plan.assignment.of_slot[b]
    assert plan.arena_bytes == 448


def test_a_smaller_result_over_a_dying_input_frees_the_rest() -> None:
    """100 floats, then 20 in their place, beside which 80 others fit."""
    draft = Draft(100)
    small = draft.step(20, draft.step(100, 0))
    y = draft.step(1, draft.step(64, small), small)
    plan = plan_memory(draft.done(y), lambda instruction: Needs(over=(0,)), alignment=4)
    [storage] = {id(each): each for each in plan.assignment.arena if len(each.slots) > 1}.values()
    assert list(storage.spans()) == [(0, 1, 400), (2, 3, 80)]
    assert plan.arena_bytes == plan.bound_bytes == 400


def test_a_smaller_result_that_is_returned_is_written_to_the_caller() -> None:
    draft = Draft(100)
    y = draft.step(20, draft.step(100, 0))
    plan = plan_memory(draft.done(y), lambda instruction: Needs(over=(0,)))
    assert plan.assignment.of_slot[y].owner is Owner.OUTPUT
    assert plan.assignment.copies == ()


def test_a_value_read_later_is_not_overwritten() -> None:
    draft = Draft(100)
    a = draft.step(100, 0)
    b = draft.step(100, a)
    y = draft.step(1, b, a)
    plan = plan_memory(draft.done(y), lambda instruction: Needs(in_place=(0,)))
    assert plan.assignment.of_slot[a] is not plan.assignment.of_slot[b]


def test_a_value_is_not_overwritten_by_a_step_that_reads_a_view_of_it() -> None:
    draft = Draft(100)
    a = draft.step(100, 0)
    v = draft.step(100, a, op="View")
    b = draft.step(100, a, v)
    y = draft.step(1, b)

    def needs(instruction: Instruction) -> Needs:
        return Needs(view_of=0) if instruction.op == "View" else Needs(in_place=(0,))

    plan = plan_memory(draft.done(y), needs)
    assert plan.assignment.of_slot[v] is plan.assignment.of_slot[a]
    assert plan.assignment.of_slot[b] is not plan.assignment.of_slot[a]


def test_outputs_that_are_inputs_or_returned_twice_are_copied() -> None:
    draft = Draft(8)
    y = draft.step(8, 0)
    plan = plan_memory(draft.done(y, 0, y))
    assert plan.assignment.copies == ((1, 0), (2, y))
    assert plan.arena_bytes == 0


def test_scratch_is_live_during_its_step_only() -> None:
    draft = Draft(16)
    a = draft.step(16, 0)
    b = draft.step(16, a)
    c = draft.step(16, b)
    plan = plan_memory(draft.done(c), lambda instruction: Needs(workspace=640))
    assert plan.bound_bytes == plan.arena_bytes == 640 + 2 * 64
    assert plan.scratch_bytes == 640


def test_the_plan_prints_as_text_and_json() -> None:
    plan = plan_memory(NETWORKS["residual"])
    assert json.loads(json.dumps(plan.to_json()))["arena_bytes"] == plan.arena_bytes
    text = plan.to_text()
    assert text == plan_memory(NETWORKS["residual"]).to_text()
    assert "v1" in text


def test_long_programs_take_linear_time() -> None:
    from programs import residual

    plan = plan_memory(residual(blocks=10_000, width=10))
    assert plan.arena_bytes == plan.bound_bytes


def test_last_uses_are_found_where_nobody_did() -> None:
    model = text.parse("g (float[3,4] x) => (float[3,4] y) { a = Exp(x) y = Tanh(a) }")
    program = lower(smelt.optimize(model))
    assert not any(instruction.last_use for instruction in program.instructions)
    assert plan_spaces(program, [Memory("")]).used == {"": 64}


def test_a_program_of_open_sizes_is_not_planned() -> None:
    model = text.parse("g (float[B,4] x) => (float[B,4] y) { a = Exp(x) y = Tanh(a) }")
    with pytest.raises(Unsupported, match="the size B of 'x' is not known") as caught:
        plan_memory(lower(smelt.optimize(model)))
    assert caught.value.code == "E411"


def test_storage_ends_where_last_use_says() -> None:
    draft = Draft(4)
    first = draft.step(4, 0)
    program = draft.done(draft.step(4, draft.step(4, draft.step(4, first))))
    assert plan_memory(program).arena_bytes == 2 * 64
    program.instructions[1].last_use = (False,)
    program.instructions[3].inputs += (first,)
    program.instructions[3].last_use += (True,)
    assert plan_memory(program).arena_bytes == 3 * 64
