"""Results whose sizes a runtime knows before a run, and results whose sizes it does not know."""

from __future__ import annotations

import pytest

from smelt.ir import text
from smelt.ir.shapes.hidden_shapes import hidden_shapes


@pytest.mark.parametrize(
    ("body", "hidden"),
    [
        ("s = Constant<value_ints=[-1,4]>() y = Reshape(x, s)", ""),
        ("s = Constant<value_ints=[1]>() r = Add(s, s) y = Tile(x, r)", ""),
        ("r = Shape(z) y = Tile(x, r)", ""),
        ("r = Shape(x) y = Tile(x, r)", "y"),
        ("r = Shape(x) t = Tile(x, r) y = Exp(t)", "t y"),
        ('s = Constant<value_strings=["a", "b"]>() r = LabelOf(s) y = Tile(x, r)', ""),
    ],
)
def test_sizes_that_follow_from_constants_are_known(body: str, hidden: str) -> None:
    model = text.parse(f"g (float[N,4] x, float[2,3] z) => (y) {{ {body} }}")
    assert hidden_shapes(model.graph, frozenset()) == set(hidden.split())
