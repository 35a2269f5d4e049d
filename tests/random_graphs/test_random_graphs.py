"""Random models stay valid, keep their interface and compute the same, whatever rewrites them."""

from __future__ import annotations

import pytest
from random_graphs.drawing import draw
from random_graphs.trial import try_seed

from smelt.ir import text

QUICK, ALL, CHUNK = 50, 20_000, 50

CHUNKS = [
    pytest.param(start, marks=[] if start < QUICK else [pytest.mark.slow])
    for start in range(0, ALL, CHUNK)
]


@pytest.mark.parametrize("start", CHUNKS)
def test_random_models_compute_the_same(start: int) -> None:
    trials = [try_seed(seed, fixpoint=True) for seed in range(start, start + CHUNK)]
    problems = [problem for trial in trials for problem in trial.problems]
    assert not problems, "\n".join(problems)
    assert sum(not trial.valid for trial in trials) <= CHUNK // 8
    assert sum(t.nodes_after for t in trials) <= 0.7 * sum(t.nodes_before for t in trials)


@pytest.mark.parametrize("focus", ["types", "edges", "sequences"])
@pytest.mark.parametrize(
    "start", [0, *(pytest.param(start, marks=pytest.mark.slow) for start in range(10, 2000, 10))]
)
def test_element_types_and_edges(start: int, focus: str) -> None:
    """In other forms, too: with functions, or in IR version 3 or 4."""
    trials = [try_seed(seed, focus, fixpoint=True, forms=True) for seed in range(start, start + 10)]
    problems = [problem for trial in trials for problem in trial.problems]
    assert not problems, "\n".join(problems)
    assert sum(not trial.valid for trial in trials) <= 4


def test_equal_seeds_draw_equal_models() -> None:
    assert text.canonical(draw(7)) == text.canonical(draw(7))
    assert text.canonical(draw(7)) != text.canonical(draw(8))
