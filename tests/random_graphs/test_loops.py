"""Random loops whose states change sizes compute what ONNX Runtime computes of the source."""

from __future__ import annotations

import pytest
from random_graphs.loop_trials import INVALID, WAYS, outcomes, refusal
from random_graphs.loops import loop_text

QUICK = (3, 6, 18, 93, 164)
"""Each of these was wrong once."""

SLOW = [
    pytest.param(tuple(range(start, start + 10)), WAYS, marks=pytest.mark.slow)
    for start in range(0, 2000, 10)
]


@pytest.mark.parametrize(("seeds", "ways"), [(QUICK, ("dims", "numpy")), *SLOW])
def test_random_loops_compute_the_same(seeds: tuple[int, ...], ways: tuple[str, ...]) -> None:
    found = list(outcomes(seeds, ways, ("-std=c99", "-Og", "-DSMELT_NO_DISPATCH")))
    assert not [each for each in found if each[1] == INVALID]
    assert not [each for each in found if each[2] and not refusal(each[2])]


@pytest.mark.parametrize(("seed", "way"), [(376, "c"), (1549, "native")])
def test_sizes_that_no_comparison_decides_end_no_compilation(seed: int, way: str) -> None:
    found = [
        each[2] for each in outcomes([seed], [way], ("-std=c99", "-O0", "-DSMELT_NO_DISPATCH"))
    ]
    assert found
    assert not [each for each in found if each and not refusal(each)]


def test_equal_seeds_write_equal_texts() -> None:
    assert loop_text(7) == loop_text(7)
    assert loop_text(7) != loop_text(8)
