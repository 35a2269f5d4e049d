"""Slices of open and fixed axes whose bounds are sizes of inputs."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text

GRAPH = """g (float[N,2] y, float[8] t) => (float[A] first, float[B] last, float[C] turned,
    float[D,2] rest) {
    n = Shape<start=0,end=1>(y) m = Neg(n) zero = Constant<value_ints=[0]>()
    far = Constant<value_ints=[100]>() back = Constant<value_ints=[-1]>()
    three = Constant<value_ints=[3]>() less = Sub(n, three)
    first = Slice(t, zero, n) last = Slice(t, m, far)
    turned = Slice(t, back, n, zero, back) rest = Slice(y, less, far) }"""


@pytest.fixture(scope="module")
def run() -> smelt.Artifact:
    """Run the graph for N from 3 to 11, which is also more than the 8 rows of the table."""
    return smelt.compile(text.parse(GRAPH, 21), target="c", dims={"N": (3, 11)})


@pytest.mark.parametrize("size", [3, 4, 7, 8, 9, 11])
def test_rows_are_those_of_a_slice_of_python(run: smelt.Artifact, size: int) -> None:
    y, t = np.arange(2 * size, dtype="f4").reshape(size, 2), np.arange(8, dtype="f4")
    wanted = (t[:size], t[-size:], t[-1:size:-1], y[size - 3 :])
    for got, rows in zip(run(y, t), wanted, strict=True):
        np.testing.assert_array_equal(got, rows)
