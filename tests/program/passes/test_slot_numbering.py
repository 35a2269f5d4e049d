"""Slots are numbered as they are defined."""

from __future__ import annotations

import numpy as np
from written import Written

from smelt.program.passes import slot_numbering


def test_unused_slots_go_and_the_rest_close_up() -> None:
    w = Written()
    w.slot(9)
    x = w.input(2)
    late = w.slot(7)
    c = w.constant(np.ones(2, np.float32))
    y = w.op("Clip", x, -1, c, min=None, max=None)
    program = w.program(y, x)
    assert late == 2
    assert slot_numbering.run(program)
    assert (program.inputs, list(program.constants), program.outputs) == ((0,), [1], (2, 0))
    assert program.instructions[0].inputs == (0, -1, 1)
    assert len(program.slots) == 3
    assert not slot_numbering.run(program)
