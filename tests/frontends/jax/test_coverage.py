"""The table of primitives agrees with what can be traced."""

import pytest

from smelt.frontends.jax import coverage, registry
from smelt.frontends.jax.support import REFUSED


def test_every_lowering_is_listed_once_in_the_family_that_has_it() -> None:
    listed = [name for family in coverage.families()[:-2] for name in family.primitives]
    assert len(listed) == len(set(listed))
    assert {"sin", "while", "scatter-add", "random_bits"} & set(registry.RULES) <= set(listed)


def test_nothing_is_both_refused_and_covered() -> None:
    covered = {name for family in coverage.families() for name in family.primitives}
    assert not covered & set(REFUSED)
    assert set(coverage.missing()) >= set(REFUSED)


def test_nearly_every_public_primitive_is_covered() -> None:
    covered, every = coverage.counts()
    assert covered > 0.9 * every


@pytest.mark.parametrize("family", coverage.families(), ids=lambda family: family.name)
def test_each_family_has_a_summary(family: coverage.Family) -> None:
    assert family.summary.endswith(".")
    assert family.primitives
