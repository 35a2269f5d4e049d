"""The order of execution: always valid, never worse than the given one, best where it is provable."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from programs import NETWORKS, Draft, residual

from smelt.program.instruction import Program
from smelt.program.schedule import planned_bound, schedule
from smelt.program.storage import Needs


def is_valid(program: Program) -> bool:
    known = {*program.inputs, *program.constants}
    for instruction in program.instructions:
        if not known.issuperset(instruction.inputs):
            return False
        known.update(instruction.outputs)
    return known.issuperset(program.outputs)


@st.composite
def programs(draw: st.DrawFn, longest: int = 18) -> Program:
    draft = Draft(4)
    for _ in range(draw(st.integers(1, longest))):
        known = list(range(len(draft.program.slots)))
        inputs = draw(st.lists(st.sampled_from(known[-6:]), min_size=1, max_size=3, unique=True))
        draft.step(draw(st.integers(0, 50)), *inputs)
    used = {slot for step in draft.program.instructions for slot in step.inputs}
    loose = [slot for slot in range(1, len(draft.program.slots)) if slot not in used]
    return draft.done(draft.step(1, *loose))


@settings(deadline=None, max_examples=100)
@given(programs())
def test_never_worse_than_the_given_order(program: Program) -> None:
    found = schedule(program)
    assert is_valid(found)
    assert sorted(map(id, found.instructions)) == sorted(map(id, program.instructions))
    assert planned_bound(found) <= planned_bound(program)


@settings(deadline=None, max_examples=40)
@given(programs(longest=6))
def test_small_programs_get_the_best_order_of_all(program: Program) -> None:
    orders = []
    for order in permutations(program.instructions):
        candidate = Program(
            program.name, program.slots, program.inputs, program.outputs, {}, list(order)
        )
        if is_valid(candidate):
            orders.append(planned_bound(candidate))
    assert planned_bound(schedule(program)) == min(orders)


def two_branches() -> Program:
    """Both branches begin large and end small; interleaved they are live together."""
    draft = Draft(1)
    a, b = draft.step(100, 0), draft.step(100, 0)
    c, d = draft.step(1, a), draft.step(1, b)
    return draft.done(draft.step(1, c, d))


def test_finishes_a_branch_before_it_begins_the_next() -> None:
    program = two_branches()
    assert planned_bound(program) == 4 * 201
    assert planned_bound(schedule(program)) == 4 * 102


def test_keeps_the_given_order_where_none_is_better() -> None:
    for program in NETWORKS.values():
        assert planned_bound(schedule(program)) <= planned_bound(program)
    chain = NETWORKS["chain"]
    assert schedule(chain) is chain


def test_is_deterministic() -> None:
    first, second = schedule(two_branches()), schedule(two_branches())
    outputs = [[step.outputs for step in p.instructions] for p in (first, second)]
    assert outputs[0] == outputs[1]


def test_scratch_space_counts() -> None:
    draft = Draft(1)
    big = draft.step(100, 0)
    small = draft.step(1, 0)
    program = draft.done(draft.step(1, big, small))

    def needs(instruction) -> Needs:
        return Needs(workspace=400 if instruction.outputs == (small,) else 0)

    # The last step writes to the caller's memory, so only the scratch step costs more than big.
    assert planned_bound(program, needs) == 4 * 100 + 4 + 400
    assert planned_bound(schedule(program, needs), needs) == 404


@pytest.mark.parametrize("blocks", [300, 8000])
def test_long_programs_are_ordered_quickly(blocks: int) -> None:
    program = residual(blocks, width=10)
    assert planned_bound(schedule(program)) <= planned_bound(program)


def both_ways() -> Program:
    """A recurrence in both directions: each begins with many pieces that its last step waits for."""
    draft = Draft(1)
    ends = []
    for _ in range(2):
        products = draft.step(240, draft.step(40, 0))
        weights = draft.step(100, draft.step(100, 0))
        bias = draft.step(40, 0)
        both = draft.step(20, draft.step(20, bias), draft.step(20, bias))
        gates = draft.step(240, products, both)
        states = [draft.step(15, 0) for _ in range(4)]
        ends.append(draft.step(60, gates, weights, *states))
    return draft.done(draft.step(1, *ends))


def test_pieces_are_made_right_before_the_step_that_waits_for_them() -> None:
    program = both_ways()
    # While the gates are made: the result of the other direction, products, both biases, gates.
    assert planned_bound(program) == 4 * 660
    assert planned_bound(schedule(program)) == 4 * (60 + 240 + 20 + 240)
