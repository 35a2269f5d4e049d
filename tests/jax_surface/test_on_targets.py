"""The surface on targets other than ONNX: a few callables in every run, the sweep on demand."""

from __future__ import annotations

from collections import Counter

import pytest
from jax_surface.on_targets import verdicts_on
from jax_surface.surface import entries
from jax_surface.worker import TARGETS, Task, answered

AT_LEAST = {"host": 0.99, "c": 0.85}
"""The share of cases that is right; the others are refused with a code."""

FEW = ("jax.numpy.cumsum", "jax.lax.rng_bit_generator")


@pytest.mark.parametrize("target", TARGETS)
def test_right_or_refused_with_a_code(target: str) -> None:
    few = [entry for entry in entries() if str(entry) in FEW]
    found = {str(e): list(verdicts_on(target, e, most=1)) for e in few}
    assert [v.kind for v in found["jax.numpy.cumsum"]] == ["right"]
    (refused,) = found["jax.lax.rng_bit_generator"]
    assert (refused.kind, refused.why[:4]) == ("refused", "E102")


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_the_whole_surface(target: str) -> None:
    kinds: Counter[str] = Counter()
    for task, rows in answered([Task(str(entry), target) for entry in entries()]):
        kinds.update(row.kind for row in rows)
        bad = [row for row in rows if row.kind in ("failed", "wrong")]
        assert not bad, (task, bad)
    assert kinds["right"] >= AT_LEAST[target] * kinds.total()
