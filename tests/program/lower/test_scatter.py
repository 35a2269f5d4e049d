"""A scatter with an unknown ``reduction`` is refused."""

from __future__ import annotations

import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text

MODEL = """g (float[4] x, int64[{}] i, float[2] u) => (float[4] y)
{{ y = {}<reduction="most">(x, i, u) }}"""


@pytest.mark.parametrize("target", ["host", "c"])
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_an_unknown_reduction_is_named(operator: str, target: str) -> None:
    indices = "2" if operator == "ScatterElements" else "2,1"
    with pytest.raises(SmeltError, match="reduction='most', not one of none, add"):
        smelt.compile(text.parse(MODEL.format(indices, operator), 18), target=target)
