"""Numbers for open sizes: large and small ones that satisfy given comparisons."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import export

from smelt.frontends.jax.open_sizes.size_examples import examples, remaining_sizes, simplified

EXAMPLES = {
    "one size": ("N", [], [{"N": 24}, {"N": 1}]),
    "a lower bound": ("N", ["N >= 3"], [{"N": 24}, {"N": 3}]),
    "an upper bound": ("N", ["N <= 7"], [{"N": 7}, {"N": 1}]),
    "a remainder": ("N", ["mod(N, 5) == 2"], [{"N": 22}, {"N": 2}]),
    "a size and its double": ("N, M", ["M == 2*N"], [{"N": 12, "M": 24}, {"N": 1, "M": 2}]),
    "another size": ("N, M", ["N != M", "N >= 24"], [{"N": 24, "M": 23}, {"N": 24, "M": 1}]),
    "beyond what is tried": ("N", ["N >= 25"], []),
    "three sizes": ("A, B, C", [], [{"A": 24, "B": 24, "C": 24}, {"A": 1, "B": 1, "C": 1}]),
    "four sizes": ("A, B, C, D", [], []),
}


@pytest.mark.parametrize(("dims", "said", "found"), EXAMPLES.values(), ids=EXAMPLES)
def test_examples(dims: str, said: list[str], found: list[dict[str, int]]) -> None:
    struct = jax.ShapeDtypeStruct(export.symbolic_shape(dims), jnp.float32)
    assert examples(struct, said) == found


LEFT = {
    "up to 4 sizes": ("N >= 1", ["N <= 4"], [f"N == {n}" for n in (1, 2, 3, 4)]),
    "5 sizes": ("N >= 1", ["N <= 5"], []),
    "one size": ("N >= 1", ["N <= 1"], []),
    "the largest that are tried": (
        "N >= 1",
        ["N >= 100000000"],
        ["N == 100000000", "N == 1000000000"],
    ),
    "two symbols": ("N >= M", ["N <= 2", "M <= 2"], []),
    "a constraint on another symbol": ("N >= 1", ["N <= 2", "M == 1"], ["N == 1", "N == 2"]),
}


@pytest.mark.parametrize(("said", "texts", "left"), LEFT.values(), ids=LEFT)
def test_remaining_sizes(said: str, texts: list[str], left: list[str]) -> None:
    assert remaining_sizes(said, texts) == left


STATED = {
    "one solution": (["N >= 3", "N <= 3"], ["N == 3"]),
    "one of a remainder": (["mod(N, 4) == 0", "N <= 7", "M >= 2"], ["N == 4", "M >= 2"]),
    "the last of small sizes": (["N >= 256", "N <= 256"], ["N == 256"]),
    "two solutions": (["N >= 3", "N <= 4"], ["N >= 3", "N <= 4"]),
    "no size is negative": (["N <= -1"], None),
    "no solution of small numbers": (["N >= 12", "N <= 11"], None),
    "no solution among those tried": (["N >= 300", "N <= 400"], ["N >= 300", "N <= 400"]),
    "two sizes that are equal": (["N >= M", "N <= M", "M >= 2"], ["N == M", "M >= 2"]),
    "one that is at least another": (["N >= M"], ["N >= M"]),
}


@pytest.mark.parametrize(("texts", "found"), STATED.values(), ids=STATED)
def test_comparisons_with_one_solution_become_equalities(
    texts: list[str], found: list[str] | None
) -> None:
    assert simplified(texts) == found
