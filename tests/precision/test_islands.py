"""The cut between float32 and half costs no more than any other choice of types."""

from __future__ import annotations

import itertools
import random

import pytest

from smelt.precision.islands import CAST, UNBOUNDED, Border


def cost(border: Border, in_half: set[object]) -> int:
    """What the choice costs: the preferences, and a Cast per value and direction."""
    total = sum(
        border.float_cost[n] if n not in in_half else border.half_cost[n] for n in border.half_cost
    )
    for writer, readers in border.values:
        total += CAST * any((reader in in_half) != (writer in in_half) for reader in readers)
    return total


@pytest.mark.parametrize("seed", range(30))
def test_no_other_choice_is_cheaper(seed: int) -> None:
    draw = random.Random(seed)
    nodes = list(range(7))
    border = Border()
    for node in nodes:
        fixed = draw.choice(["float", "half", "", "", ""])
        border.add(
            node,
            in_float=UNBOUNDED if fixed == "half" else draw.randrange(60),
            in_half=UNBOUNDED if fixed == "float" else draw.randrange(60),
        )
    for writer in nodes[:-1]:
        readers = draw.sample(nodes[writer + 1 :], k=min(draw.randint(1, 3), 6 - writer))
        border.connect(writer, readers)
    choices = itertools.chain.from_iterable(
        itertools.combinations(nodes, size) for size in range(len(nodes) + 1)
    )
    cheapest = min(cost(border, set(choice)) for choice in choices)
    assert cost(border, border.nodes_in_half()) == cheapest


def test_a_long_chain() -> None:
    border = Border()
    for node in range(10_000):
        border.add(node, in_float=1 if node % 2 else 0, in_half=UNBOUNDED if node % 20 == 0 else 0)
        if node:
            border.connect(node - 1, [node])
    assert not border.nodes_in_half() & set(range(0, 10_000, 20))
