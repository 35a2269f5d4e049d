"""Constraints such as ``S % 4 == 0`` make symbols multiples of numbers."""

from __future__ import annotations

import ast

import pytest

from smelt.frontends.jax.open_sizes.multiples import multiples_of

SAID = {
    "one": (["N % 4 == 0"], {"N": 4}),
    "two numbers of one symbol": (["N % 4 == 0", "N % 6 == 0"], {"N": 12}),
    "two symbols": (["N % 4 == 0", "M % 3 == 0"], {"N": 4, "M": 3}),
    "of 1": (["N % 1 == 0"], {}),
    "of 2": (["N % 2 == 0"], {"N": 2}),
    "of nothing": (["N % 0 == 0"], {}),
    "with a remainder": (["N % 4 == 1"], {}),
    "a bound": (["N >= 4"], {}),
    "in another equality": (["N % 4 == 0", "M % 3 == 0", "N == 2*K"], {"M": 3}),
    "in an inequality": (["N % 4 == 0", "N >= M"], {"N": 4}),
}


@pytest.mark.parametrize(("texts", "found"), SAID.values(), ids=SAID)
def test_multiples(texts: list[str], found: dict[str, int]) -> None:
    constraints = [ast.parse(text, mode="eval").body for text in texts]
    assert multiples_of(each for each in constraints if isinstance(each, ast.Compare)) == found
