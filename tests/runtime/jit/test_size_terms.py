"""Sizes as terms give what the dims of a model give, and refuse shapes that disagree."""

from __future__ import annotations

import pytest

from smelt.runtime.jit.size_terms import TermSizes, solved

N, M = ((1, ("N",)),), ((1, ("M",)),)
SUM = ((1, ("N",)), (2, ("M",)), (3, ()))
PRODUCT = ((2, ("M", "N")),)
FOUR = ((4, ()),)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(N, 5)], {"N": 5}),
        ([(SUM, 12), (N, 5)], {"N": 5, "M": 2}),
        ([(PRODUCT, 12), (N, 3)], {"N": 3, "M": 2}),
        ([(PRODUCT, 12), (N, 0)], {"N": 0}),
        ([(SUM, 12)], {}),
        ([(FOUR, 4)], {}),
    ],
)
def test_a_term_with_one_unknown_name_gives_its_size(pairs, expected):
    assert solved(pairs) == expected


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (((5, 4), (12,)), ([5, 2], [(20, 4)])),
        (((0, 4), (3,)), ([0, 0], [(0, 4)])),
        (((5, 3), (12,)), None),  # 3 is not 4
        (((5, 4), (13,)), None),  # M would be 2.5
        (((5, 4), (4,)), None),  # M is below 0
        (((9, 4), (14,)), None),  # N is above its bound
        (((5, 4),), None),
        (((5,), (12,)), None),
    ],
)
def test_shapes_of_results(shapes, expected):
    sizes = TermSizes([(N, FOUR), (SUM,)], [(PRODUCT, FOUR)], {"N": (0, 8), "M": (0, 8)})
    assert sizes(shapes) == expected
