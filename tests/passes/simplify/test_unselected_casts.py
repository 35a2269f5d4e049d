"""Constants cast out of range are folded where a Where selects the other operand."""

from __future__ import annotations

import numpy as np
import pytest

from smelt.ir import text
from smelt.passes.base import PassContext
from smelt.passes.simplify.select_optimization import select_optimization
from smelt.runtime.reference import Reference

HEAD = "g (float[4] x) => (int64[4] y) <float[4] f = {numbers}, bool[4] m = {mask}, int64[4] a = {{9, 9, 9, 9}}, int64 k = {{8}}>"
TAIL = "{ c = Cast<to=7>(f) d = Add(c, k) e = Min(a, d) y = Where(m, a, e) }"


def graph(numbers: str, mask: str, tail: str = TAIL) -> str:
    return HEAD.format(numbers=numbers, mask=mask) + tail


FOLDED = {
    "negative infinity": graph("{-inf, 1.5, -2.5, 3}", "{1, 0, 0, 0}"),
    "NaN and too large": graph("{nan, 1.5, -2.5, 1e30}", "{1, 0, 0, 1}"),
    "the largest integer and one": graph("{9223372036854775807, 1, 2, 3}", "{1, 0, 0, 0}"),
    "where the mask is false": graph(
        "{-inf, 1, 2, 3}", "{0, 1, 1, 1}", "{ c = Cast<to=7>(f) y = Where(m, c, a) }"
    ),
}


@pytest.mark.parametrize("name", FOLDED)
def test_what_is_not_selected_becomes_0(name) -> None:
    model = text.parse(FOLDED[name], 18)
    stats = select_optimization.run(PassContext.of(model))
    assert stats.fired["unselected_cast"] == 1
    assert "Cast" not in {node.op_type for node in model.graph}
    expected = {"where the mask is false": [9, 1, 2, 3]}.get(name, [9, 9, 6, 9])
    if name == "the largest integer and one":
        expected = [9, 9, 9, 9]
    [found] = Reference(model)(np.zeros(4, np.float32))
    assert found.tolist() == expected


KEPT = {
    "a selected element": graph("{1, -inf, 2, 3}", "{1, 0, 0, 0}"),
    "numbers in range": graph("{1, 2, 3, 4}", "{1, 0, 0, 0}"),
    "numbers in range, without a chain": graph(
        "{1, 2, 3, 4}", "{1, 0, 0, 0}", "{ c = Cast<to=7>(f) y = Where(m, a, c) }"
    ),
    "a mask that broadcasts": graph("{-inf, 1, 2, 3}", "{1, 0, 0, 0}").replace(
        "bool[4] m = {1, 0, 0, 0}", "bool[1] m = {1}"
    ),
    "a computed operand": graph(
        "{-inf, 1, 2, 3}",
        "{1, 0, 0, 0}",
        "{ c = Cast<to=7>(f) i = Cast<to=7>(x) d = Add(c, i) y = Where(m, a, d) }",
    ),
    "a sum along an axis": graph(
        "{-inf, 1, 2, 3}",
        "{1, 0, 0, 0}",
        "{ c = Cast<to=7>(f) d = CumSum(c, k) y = Where(m, a, d) }",
    ).replace("int64 k = {8}", "int64 k = {0}"),
    "computed floats": graph(
        "{-inf, 1, 2, 3}", "{1, 0, 0, 0}", "{ c = Cast<to=7>(x) y = Where(m, a, c) }"
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_casts_stay(name) -> None:
    model = text.parse(KEPT[name], 18)
    stats = select_optimization.run(PassContext.of(model))
    assert not stats.fired["unselected_cast"]
