"""Split instructions stay single-threaded where more memory is live than the limit."""

from __future__ import annotations

import pytest

from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference
from smelt.native import memory
from smelt.native.memory import allocate
from smelt.native.schedule import planned
from smelt.native.sharing import SINGLE_THREADED
from smelt.program.lower import lower

GRAPH = """g (float[64,64] x) => (float[64,64] y) {
    a = MatMul(x, x) b = MatMul(a, a) c = MatMul(b, a) y = MatMul(c, x) }"""


@pytest.mark.parametrize(
    ("live", "limit", "marked"),
    [
        ({0: 64, 1: 128, 2: 129}, 128, [False, False, True, True]),
        ({0: 64, 1: 128, 2: 64}, 127, [False, True, False, False]),
        ({0: 64, 2: 128, 3: 64}, 127, [False, False, True, False]),
        ({0: 64, 1: 128}, 128, [True] * 4),
    ],
)
def test_instructions_above_the_limit_are_marked(live, limit, marked, monkeypatch) -> None:
    model = text.parse(GRAPH)
    ShapeInference(model).infer_model()
    plan = allocate(planned(lower(model), "test", (), ()), parts=2)
    monkeypatch.setattr(memory, "live_from", lambda storages, alignment: live)
    program = memory._unsplit_at_peak(plan, 2, limit)
    assert program is not None
    assert [SINGLE_THREADED in each.attributes for each in program.instructions] == marked
    assert memory._unsplit_at_peak(plan, 1, limit) is None


def test_an_arena_of_exactly_the_limit_is_kept() -> None:
    model = text.parse(GRAPH)
    ShapeInference(model).infer_model()
    program = planned(lower(model), "test", (), ())
    whole = allocate(program, parts=8)
    same = allocate(program, parts=8, limit=whole.arena_bytes)
    assert not any(SINGLE_THREADED in each.attributes for each in same.program.instructions)
    assert same.arena_bytes == whole.arena_bytes
