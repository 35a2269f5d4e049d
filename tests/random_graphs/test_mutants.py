"""The generator is proved by mutation: wrong passes that it has to catch."""

from __future__ import annotations

import pytest
from random_graphs.drawing import draw
from random_graphs.judging import Judge
from random_graphs.mutants import MUTANTS
from random_graphs.mutation import Mutant, applied

from smelt.compiler import optimize_model
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.passes.base import joint_exactness

GRAPHS = 1500


@pytest.mark.slow  # tests/mutants has one of each pass, with a model that shows it at once
@pytest.mark.parametrize("mutant", MUTANTS, ids=str)
def test_a_wrong_pass_is_caught(mutant: Mutant) -> None:
    assert any(_catches(seed, mutant) for seed in range(GRAPHS))


def _catches(seed: int, mutant: Mutant) -> bool:
    """True if the pass, made wrong, gives another model, and that does not do as its source."""
    source = draw(seed, mutant.focus)
    right, wrong = source.clone(), source.clone()
    try:
        optimize_model(right, pipeline=mutant.pass_)
    except SmeltError:
        return False  # the draw is no valid model
    try:
        with applied(mutant):
            reports = optimize_model(wrong, pipeline=mutant.pass_)
    except Exception:  # noqa: BLE001 - whatever a wrong pass dies of, it is noticed
        return True
    if text.canonical(right) == text.canonical(wrong):
        return False
    try:
        judge = Judge(source, seed)
    except SmeltError:
        return False
    try:
        return bool(
            judge.problems(wrong, joint_exactness(r.exactness for r in reports if r.changed))
        )
    except SmeltError:
        return True
