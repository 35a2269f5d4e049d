"""Bounds of sizes that data tell: of the operator, of the caller, or the tighter of both."""

from __future__ import annotations

import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.program.run_sizes import Size

PLACES = "g (float[3,3] x) => (int64[2,N] y) { y = NonZero(x) }"
COUNT = "g (int64 a, int64 b, int64 c) => (int64[N] y) { y = Range(a, b, c) }"
BOUNDS = {
    "of the operator": (PLACES, None, (0, 9)),
    "tighter ones of the caller": (PLACES, (2, 5), (2, 5)),
    "wider ones of the caller": (PLACES, (0, 100), (0, 9)),
    "of the caller alone": (COUNT, (0, 5), (0, 5)),
}


@pytest.mark.parametrize(("graph", "said", "bounds"), BOUNDS.values(), ids=BOUNDS)
def test_bounds_of_a_size_that_data_tell(
    graph: str, said: tuple[int, int] | None, bounds: tuple[int, int]
) -> None:
    artifact = smelt.compile(
        text.parse(graph), target="c", dims={} if said is None else {"N": said}
    )
    program = artifact.plan.steps
    size = program.slots[program.outputs[0]].shape[-1]
    assert isinstance(size, Size)
    assert (size.low, size.high) == bounds


def test_a_size_without_bounds_is_refused() -> None:
    with pytest.raises(SmeltError, match="is not known before the model runs") as caught:
        smelt.compile(text.parse(COUNT), target="c")
    assert caught.value.code == "E411"
