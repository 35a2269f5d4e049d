"""Dropout on c and host: the identity; a run that would drop elements aborts."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text

HEAD = "float[2,3] x, float r, bool t"
X = np.arange(6, dtype=np.float32).reshape(2, 3)
CASES = {
    "both of the run": (HEAD, "y, m = Dropout(x, r, t)"),
    "a constant ratio": (HEAD, "k = Constant<value_float=0.25>() y, m = Dropout(x, k, t)"),
    "a constant ratio of 0": (HEAD, "k = Constant<value_float=0.0>() y, m = Dropout(x, k, t)"),
    "no ratio": (HEAD, "y, m = Dropout(x, , t)"),
    "trained": (
        HEAD,
        "k = Constant<value_int=1>() u = Cast<to=9>(k) y, m = Dropout(x, r, u)",
    ),
    "not trained": (HEAD, "y, m = Dropout(x, r)"),
}


def drops(name: str, ratio: float, training: bool) -> bool:
    """True if a run of the case would drop elements."""
    ratio = {"a constant ratio": 0.25, "a constant ratio of 0": 0, "no ratio": 0.5}.get(name, ratio)
    return ratio != 0 and {"trained": True, "not trained": False}.get(name, training)


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("name", CASES)
def test_a_run_that_drops_nothing_is_the_identity(name: str, target: str) -> None:
    head, body = CASES[name]
    graph = text.parse(f"g ({head}) => (float[2,3] y, bool[2,3] m) {{ {body} }}", 22)
    artifact = smelt.compile(graph, target=target)
    for ratio, training in ((0.0, False), (0.0, True), (0.5, False), (0.5, True)):
        given = {"x": X, "r": np.float32(ratio), "t": np.array(training)}
        inputs = [given[value.name] for value in artifact.model.graph.inputs]
        if drops(name, ratio, training):
            with pytest.raises(SmeltError, match=r"E670|E321"):
                artifact(*inputs)
            continue
        y, mask = artifact(*inputs)
        np.testing.assert_array_equal(y, X)
        assert mask.all()
