"""Programs that read before they write, and plans in which two share bytes, are found."""

from dataclasses import replace

import pytest
from lowered import lowered

from smelt.errors import InternalError
from smelt.program.chips.memories import Memory, plan_spaces
from smelt.program.memory import plan_memory
from smelt.program.verify import verify_memory, verify_program

GRAPH = "g (float[64] x) => (float[64] y) { a = Neg(x) b = Abs(x) c = Add(a, b) y = Mul(c, b) }"


def program():
    return lowered(GRAPH)


def broken(call, *arguments) -> str:
    with pytest.raises(InternalError) as caught:
        call(*arguments)
    assert caught.value.code == "E963"
    return str(caught.value)


def test_lowered_and_planned_programs_pass_verification() -> None:
    verify_program(program())
    verify_memory(plan_memory(program()))
    verify_memory(plan_spaces(program(), [Memory("", 4096)]))


def test_a_read_before_the_write() -> None:
    found = program()
    found.instructions.reverse()
    assert "reads 'c' before it is written" in broken(verify_program, found)


def test_an_output_that_is_never_written() -> None:
    found = program()
    del found.instructions[-1]
    assert "the output 'y' is never written" in broken(verify_program, found)


def test_two_that_live_at_once_in_the_same_bytes() -> None:
    plan = plan_memory(program())
    assert "share bytes at step" in broken(verify_memory, replace(plan, offsets=(0, 0, 0)))


def test_bytes_beyond_the_arena() -> None:
    plan = plan_memory(program())
    assert "leaves the 64 bytes" in broken(verify_memory, replace(plan, arena_bytes=64))
