"""The last reader of each slot is flagged; outputs never are."""

from __future__ import annotations

from written import Written

from smelt.program.instruction import Program
from smelt.program.passes import last_use


def flags(program: Program) -> list[tuple[bool, ...]]:
    last_use.run(program)
    return [instruction.last_use for instruction in program.instructions]


def test_only_the_last_reader_is_flagged() -> None:
    w = Written()
    x = w.input(2)
    a = w.op("Relu", x)
    b = w.op("Add", a, x)
    program = w.program(w.op("Mul", a, b))
    assert flags(program) == [(False,), (False, True), (True, True)]
    assert not last_use.run(program)


def test_a_slot_read_twice_by_one_instruction_is_flagged_twice() -> None:
    w = Written()
    a = w.op("Relu", w.input(2))
    program = w.program(w.op("Add", a, a))
    assert flags(program) == [(True,), (True, True)]


def test_outputs_are_never_flagged() -> None:
    w = Written()
    x = w.input(2)
    a = w.op("Relu", x)
    program = w.program(a, w.op("Neg", a), x, a)
    assert flags(program) == [(False,), (False,)]


def test_absent_inputs_are_not_flagged() -> None:
    w = Written()
    x = w.input(2)
    program = w.program(w.op("Clip", x, -1, x, min=None, max=None))
    assert flags(program) == [(True, False, True)]
