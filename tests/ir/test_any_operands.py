"""Every operator with operands and attributes drawn at random: refused, or taken; never E9xx."""

from __future__ import annotations

from random import Random

import pytest
from random_operands import Draw, operators

import smelt
from smelt.errors import SmeltError


def check(name: str, numbers: range) -> None:
    for number in numbers:
        refusal = None
        try:
            smelt.optimize(Draw(name, Random(f"{name} {number}")).model())
        except SmeltError as error:
            refusal = error
        assert refusal is None or not refusal.code.startswith("E9"), (number, refusal)


@pytest.mark.parametrize("name", operators())
def test_a_draw_of_each_operator(name: str) -> None:
    check(name, range(1))


@pytest.mark.slow
@pytest.mark.parametrize("name", operators())
def test_more_draws(name: str) -> None:
    check(name, range(1, 16))
