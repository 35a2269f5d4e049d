"""Results are compared within what a pass declares; extra runs widen that where they may."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.check.judgement import compare_declared
from smelt.passes.base import Exactness

ONE, NEXT = np.float32(1), np.nextafter(np.float32(1), np.float32(2))
INFINITE = [np.array([np.inf])]
ROWS = [
    # declared, before, after, is it right, extra runs that may be needed
    (Exactness("exact"), ONE, ONE, True, []),
    (Exactness("exact"), ONE, NEXT, False, []),
    (Exactness("exact"), np.float32(0), np.float32(-0.0), False, []),
    (Exactness("exact", zero_sign=False), np.float32(0), np.float32(-0.0), True, []),
    (Exactness("exact", zero_sign=False), ONE, NEXT, True, ["undetermined"]),
    (Exactness("rounding", ulp=2), ONE, NEXT, True, ["movement"]),
    (Exactness("rounding", ulp=2), ONE, np.float32(2), False, ["movement"]),
    (Exactness("rounding", ulp=2, zero_sign=False), ONE, NEXT, True, ["movement"]),
    (
        Exactness("rounding", ulp=2, zero_sign=False),
        ONE,
        np.float32(2),
        True,
        ["movement", "undetermined"],
    ),
]


@pytest.mark.parametrize(("declared", "before", "after", "is_right", "needed"), ROWS)
def test_extra_runs_are_made_only_where_they_decide(
    declared, before, after, is_right, needed
) -> None:
    ran = []

    def movement():
        ran.append("movement")
        return [np.array([1e-7])]

    def undetermined():
        ran.append("undetermined")
        return INFINITE

    (found,) = compare_declared(
        [before.reshape(1)], [after.reshape(1)], declared, movement, undetermined
    )
    assert found.ok is is_right
    assert ran == needed
