"""Instructions that nobody needs go; what an output needs, or an effect, stays."""

from __future__ import annotations

import numpy as np
from written import Written, ops

from smelt.program.instruction import Instruction
from smelt.program.passes import dead_code_elimination


def test_an_unread_chain_goes_with_its_constants() -> None:
    w = Written()
    x, c = w.input(2), w.constant(np.ones(2, np.float32))
    w.op("Relu", w.op("Add", x, c))
    kept = w.op("Neg", x)
    program = w.program(kept)
    assert dead_code_elimination.run(program)
    assert ops(program) == ["Neg"]
    assert not program.constants
    assert not dead_code_elimination.run(program)


def test_outputs_that_are_inputs_or_constants_need_no_instruction() -> None:
    w = Written()
    x, c = w.input(2), w.constant(np.ones(2, np.float32))
    w.op("Neg", x)
    program = w.program(x, c, x)
    assert dead_code_elimination.run(program)
    assert not program.instructions
    assert set(program.constants) == {c}


def test_one_live_result_keeps_an_instruction() -> None:
    w = Written()
    x = w.input(2)
    first, second = w.slot(2), w.slot(2)
    w.made.instructions.append(Instruction("MaxPool", (x,), (first, second)))
    program = w.program(second)
    assert not dead_code_elimination.run(program)
    assert ops(program) == ["MaxPool"]


def test_side_effects_and_what_they_read_stay() -> None:
    w = Written()
    x = w.input(2)
    w.op("example::Check", w.op("Neg", x))
    program = w.program(x)
    assert not dead_code_elimination.run(program, side_effects={"example::Check"})
    assert ops(program) == ["Neg", "example::Check"]
    assert dead_code_elimination.run(program)
    assert not program.instructions


def test_absent_inputs_keep_nothing_alive() -> None:
    w = Written()
    x = w.input(2)
    program = w.program(w.op("Clip", x, -1, x, min=None, max=None))
    assert not dead_code_elimination.run(program)
