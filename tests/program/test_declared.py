"""Sizes that only the declaration of an output tells."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text

TARGETS = ("c", "host")


@pytest.mark.parametrize("target", TARGETS)
def test_a_reshape_to_what_an_input_says_has_the_declared_sizes(target: str) -> None:
    model = text.parse("g (float[6] x, int64[2] s) => (float[2,3] y) { y = Reshape(x, s) }", 23)
    x = np.arange(6, dtype=np.float32)
    (y,) = smelt.compile(model, target=target)(x, np.array([2, 3]))
    np.testing.assert_array_equal(y, x.reshape(2, 3))


@pytest.mark.parametrize("target", TARGETS)
def test_a_range_has_the_declared_number_or_ends_the_run(target: str) -> None:
    graph = "g (int64 n) => (int64[4] y) <int64 z = {0}, int64 o = {1}> { y = Range(z, n, o) }"
    compiled = smelt.compile(text.parse(graph, 23), target=target)
    np.testing.assert_array_equal(compiled(np.array(4))[0], np.arange(4))
    with pytest.raises(SmeltError, match="E670"):
        compiled(np.array(3))


REFUSED = {
    "other elements than there are": (
        "g (float[6] x, int64[1] s) => (float[100] y) { y = Reshape(x, s) }",
        "E317",
    ),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", REFUSED)
def test_declared_shapes_that_a_run_could_contradict_are_refused(target: str, name: str) -> None:
    graph, code = REFUSED[name]
    with pytest.raises(SmeltError) as caught:
        smelt.compile(text.parse(graph, 23), target=target)
    assert code in str(caught.value)
