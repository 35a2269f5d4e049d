"""Each registered pass, alone on drawn models, keeps the error that it declares."""

from __future__ import annotations

import pytest
from random_graphs.one_pass import STRUCTURED, Held, hold

FOCI = ["", "spelled out", "recurrent", pytest.param(STRUCTURED, marks=pytest.mark.slow)]
SOME, ALL, CHUNK = 3, 1_000, 50
CHUNKS = [
    range(SOME),
    *(
        pytest.param(range(start, start + CHUNK), marks=pytest.mark.slow)
        for start in range(0, ALL, CHUNK)
    ),
]


@pytest.mark.parametrize("focus", FOCI)
@pytest.mark.parametrize("seeds", CHUNKS, ids=str)
def test_declared_error(seeds: range, focus: str) -> None:
    held = Held()
    for seed in seeds:
        hold(seed, focus, held)
    assert held.drawn >= len(seeds) // 2
    assert held.changed
    assert not held.problems, "\n".join(held.problems)
