"""Loads, stores, spills and bands through a small memory; results stay equal, and limits hold."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lowered import lowered
from staged import run

from smelt.errors import Unsupported, UsageError
from smelt.program.chips.memories import Memory, SpacesPlan, plan_spaces
from smelt.program.chips.overlap import LOAD, STORE
from smelt.program.chips.staging import plan_staged, stage
from smelt.program.chips.tile_search import tile_to_fit
from smelt.program.chips.tiling import split
from smelt.program.instruction import Instruction, Program
from smelt.program.verify import verify_memory

DRAM = Memory("dram")
SIDE = 16
BYTES = 4 * SIDE


def sram(values: int) -> Memory:
    return Memory("sram", values * BYTES, align=16)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Draw up to 10 sums and negations of vectors of one size; some results are returned."""
    names, lines = ["x", "z"], []
    for i in range(draw(st.integers(1, 10))):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        lines.append(f"v{i} = Add({a}, {b})" if draw(st.booleans()) else f"v{i} = Neg({a})")
        names.append(f"v{i}")
    outputs = draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True))
    declared = ", ".join(f"float[{SIDE}] {name}" for name in outputs)
    return f"g (float[{SIDE}] x, float[{SIDE}] z) => ({declared}) {{ {' '.join(lines)} }}"


ARRAYS = [np.linspace(-1, 2, SIDE, dtype=np.float32), np.arange(SIDE, dtype=np.float32)]


def check_places(plan: SpacesPlan, near: Memory) -> None:
    """Assert that live slots share no bytes, and that instructions compute in near memory."""
    slots = plan.program.slots
    for instruction in plan.program.instructions:
        if instruction.op not in (LOAD, STORE):
            touched = (*instruction.inputs, *instruction.outputs)
            assert {slots[slot].space for slot in touched if slot >= 0} == {near.name}
    held = [s for s in plan.assignment.arena if s.space == near.name]
    for i, one in enumerate(held):
        start = plan.offsets[id(one)]
        assert start % near.align == 0
        assert near.size is None or start + one.size <= near.size
        for other in held[:i]:
            begin = plan.offsets[id(other)]
            together = one.first <= other.last and other.first <= one.last
            assert not together or start + one.size <= begin or begin + other.size <= start


@settings(deadline=None, max_examples=30)
@given(programs(), st.integers(3, 6), st.booleans())
def test_any_program_fits_that_one_instruction_fits(source: str, values: int, double: bool) -> None:
    program = lowered(source)
    plan = plan_staged(program, DRAM, sram(values), double_buffer=double)
    check_places(plan, sram(values))
    for got, wanted in zip(run(plan.program, *ARRAYS), run(program, *ARRAYS), strict=True):
        np.testing.assert_array_equal(got, wanted)


def ops(program: Program) -> str:
    return " ".join(instruction.op for instruction in program.instructions)


CHAIN = f"g (float[{SIDE}] x) => (float[{SIDE}] y) {{ a = Neg(x) b = Abs(a) y = Neg(b) }}"


def test_values_that_fit_stay_near() -> None:
    assert ops(stage(lowered(CHAIN), DRAM, sram(3))) == "Load Neg Abs Neg Store"


def test_tensors_that_do_not_fit_are_spilled_and_loaded_again() -> None:
    source = f"""g (float[{SIDE}] x, float[{SIDE}] z) => (float[{SIDE}] y) {{
        a = Neg(x) b = Neg(z) c = Add(b, z) d = Add(c, b) y = Add(d, a) }}"""
    staged = stage(lowered(source), DRAM, sram(3), double_buffer=False)
    assert ops(staged) == "Load Neg Load Neg Store Add Add Load Add Store"


def test_loads_move_before_the_previous_computation() -> None:
    source = f"""g (float[{SIDE}] x, float[{SIDE}] z) => (float[{SIDE}] y) {{ a = Neg(x) y = Add(a, z) }}"""
    assert ops(stage(lowered(source), DRAM, sram(4))) == "Load Load Neg Add Store"
    assert (
        ops(stage(lowered(source), DRAM, sram(4), double_buffer=False)) == "Load Neg Load Add Store"
    )


def test_one_instruction_that_does_not_fit_is_refused_with_its_tensors() -> None:
    with pytest.raises(Unsupported) as caught:
        plan_staged(lowered(CHAIN), DRAM, sram(1))
    assert caught.value.code == "E405"
    assert f"{BYTES} bytes: x" in str(caught.value)
    assert f"{2 * BYTES} bytes are needed at once" in str(caught.value)


def test_a_home_memory_has_a_limit_too() -> None:
    source = f"g (float[{SIDE}] x) => (float[{SIDE}] y) {{ a = Neg(x) b = Abs(a) c = Add(a, b) d = Add(c, b) e = Add(d, a) y = Add(e, b) }}"
    with pytest.raises(Unsupported) as caught:
        plan_spaces(lowered(source), (Memory("", 2 * BYTES),))
    assert caught.value.code == "E405"
    assert "bytes: a" in str(caught.value)


def test_a_slot_without_a_memory_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        plan_spaces(lowered(CHAIN), (Memory("tcm"),))
    assert caught.value.code == "E660"


@pytest.mark.parametrize("memory", [("a", -1, 1), ("a", 1, 0)])
def test_negative_memory_sizes_are_refused(memory: tuple[str, int, int]) -> None:
    with pytest.raises(UsageError):
        Memory(*memory)


def test_bands_of_a_convolution_stream_through_a_small_memory() -> None:
    source = """g (float[1,4,16,16] x, float[8,4,3,3] w) => (float[1,8,7,7] y) {
        c = Conv(x, w) r = Relu(c) y = MaxPool<kernel_shape=[2,2], strides=[2,2]>(r) }"""
    program = lowered(source)
    near = Memory("sram", 8192, align=16)
    with pytest.raises(Unsupported):
        plan_staged(program, DRAM, near)
    plan = plan_staged(tile_to_fit(program, 4000), DRAM, near)
    check_places(plan, near)
    rng = np.random.default_rng(1)
    arrays = [
        rng.standard_normal(shape).astype(np.float32) for shape in ((1, 4, 16, 16), (8, 4, 3, 3))
    ]
    np.testing.assert_allclose(
        run(plan.program, *arrays)[0], run(program, *arrays)[0], rtol=1e-5, atol=1e-5
    )
    names = ops(plan.program).split()
    loads_behind_a_compute = sum(a == "Conv" and b == "Load" for a, b in pairwise(names))
    assert loads_behind_a_compute < names.count("Conv")


def place(instruction: Instruction, operand: int | None) -> str:
    """Return the memory of weights for second operands, that of activations for everything else."""
    return "weights" if operand == 1 else "acts"


@settings(deadline=None, max_examples=30)
@given(programs(), st.integers(2, 5), st.integers(1, 3), st.booleans())
def test_two_near_memories(source: str, acts: int, weights: int, double: bool) -> None:
    program = lowered(source)
    near = [Memory("acts", acts * BYTES, align=16), Memory("weights", weights * BYTES, align=16)]
    plan = plan_staged(program, DRAM, near, place=place, double_buffer=double)
    slots = plan.program.slots
    for instruction in plan.program.instructions:
        if instruction.op not in (LOAD, STORE):
            for position, slot in enumerate(instruction.inputs):
                assert slots[slot].space == place(instruction, position)
            assert slots[instruction.outputs[0]].space == "acts"
    assert plan.used["acts"] <= acts * BYTES
    assert plan.used["weights"] <= weights * BYTES
    verify_memory(plan)
    for got, wanted in zip(run(plan.program, *ARRAYS), run(program, *ARRAYS), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_the_memory_that_is_too_small_is_named() -> None:
    near = [Memory("acts", 2 * BYTES), Memory("weights", BYTES // 2)]
    source = f"g (float[{SIDE}] x) => (float[{SIDE}] y) {{ a = Neg(x) y = Add(a, x) }}"
    with pytest.raises(Unsupported, match="'weights' of 32 bytes is too small for one Add"):
        plan_staged(lowered(source), DRAM, near, place=place)


def test_an_unknown_memory_name_is_refused() -> None:
    source = lowered(f"g (float[{SIDE}] x) => (float[{SIDE}] y) {{ y = Neg(x) }}")
    near = [Memory("acts", BYTES), Memory("weights", BYTES)]
    with pytest.raises(UsageError, match="the memories are 'acts', 'weights'"):
        plan_staged(source, DRAM, near)
    with pytest.raises(UsageError, match="puts an operand of Neg into 'acts'"):
        tile_to_fit(source, 32, (0,), place=place)


def test_bands_shared_by_tiles_are_loaded_once() -> None:
    """There are four tiles of two filters and half of the rows; each half of the weights is loaded
    once.
    """
    source = (
        """g (float[1,4,16,16] x, float[8,4,3,3] w) => (float[1,8,14,14] y) { y = Conv(x, w) }"""
    )
    program = lowered(source)
    tiles = split(program, program.instructions[0], {1: 4, 2: 7})
    assert tiles is not None
    staged = stage(replace(program, instructions=tiles), DRAM, Memory("sram", 6000))
    loads = [i.inputs[0] for i in staged.instructions if i.op == LOAD]
    assert [loads.count(slot) for slot in program.inputs] == [4, 2]
    assert ops(staged).count("Conv") == 4
