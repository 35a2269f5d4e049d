"""Constraints such as ``S % 4 == 0`` make symbols multiples of numbers."""

from __future__ import annotations

import ast

import pytest

from smelt.frontends.jax.open_sizes.multiples import multiples_of, with_products

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


PRODUCTS = {
    "a symbol": ("S + 1", "4 * S__over_4 + 1"),
    "a power": ("S**2", "16 * S__over_4 ** 2"),
    "a power of another symbol": ("N**2 - S", "N ** 2 - 4 * S__over_4"),
    "a power of 0": ("S**0", "(4 * S__over_4) ** 0"),
    "arguments": ("max(S, N)", "max(4 * S__over_4, N)"),
}


@pytest.mark.parametrize(("size", "expected"), PRODUCTS.values(), ids=PRODUCTS)
def test_products_replace_symbols(size: str, expected: str) -> None:
    tree = ast.parse(size, mode="eval").body
    assert ast.unparse(with_products(tree, {"S": 4})) == expected
