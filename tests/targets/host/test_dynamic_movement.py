"""Slice, Pad, Tile and TopK with run-time operands, whose results must have the declared sizes."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import UsageError
from smelt.ir import text

X = np.arange(20, dtype=np.float32).reshape(4, 5)
CASES = {
    "g (float[4,5] x, int64[2] s, int64[2] e) => (float[2,3] y) { y = Slice(x, s, e) }": (
        (np.array([1, -3]), np.array([3, 9])),
        X[1:3, 2:],
    ),
    "g (float[4,5] x, int64[1] s, int64[1] e, int64[1] a, int64[1] t) => (float[4,2] y) "
    "{ y = Slice(x, s, e, a, t) }": (
        (np.array([-99]), np.array([-100]), np.array([-1]), np.array([-2])),
        None,
    ),
    "g (float[4,5] x, int64[4] p) => (float[5,7] y) { y = Pad(x, p) }": (
        (np.array([1, 2, 0, 0]),),
        np.pad(X, [(1, 0), (2, 0)]),
    ),
    'g (float[4,5] x, int64[4] p) => (float[5,7] y) { y = Pad<mode="reflect">(x, p) }': (
        (np.array([1, 2, 0, 0]),),
        np.pad(X, [(1, 0), (2, 0)], mode="reflect"),
    ),
    "g (float[4,5] x, int64[2] r) => (float[8,5] y) { y = Tile(x, r) }": (
        (np.array([2, 1]),),
        np.tile(X, (2, 1)),
    ),
    "g (float[4,5] x, int64[1] k) => (float[4,2] y, int64[4,2] i) { y, i = TopK(x, k) }": (
        (np.array([2]),),
        X[:, :2:-1],
    ),
    "g (float[4,5] x, int64[3] s) => (float[2,4,5] y) { y = Expand(x, s) }": (
        (np.array([2, 4, 5]),),
        np.stack([X, X]),
    ),
}


@pytest.mark.parametrize("target", ["host", "c"])
@pytest.mark.parametrize("graph", CASES)
def test_run_time_sizes_must_be_the_declared_ones(graph: str, target: str) -> None:
    given, wanted = CASES[graph]
    artifact = smelt.compile(text.parse(graph, 18), target=target)
    if wanted is not None:
        np.testing.assert_array_equal(artifact(X, *given)[0], wanted)
    for other in _others(given):
        with pytest.raises(UsageError, match="E670"):
            artifact(X, *other)


@pytest.mark.parametrize("target", ["host", "c"])
def test_a_run_time_size_may_be_zero(target: str) -> None:
    graph = "g (float[4,1] x, int64[2] s) => (float[4,0] y) { y = Expand(x, s) }"
    artifact = smelt.compile(text.parse(graph, 18), target=target)
    assert artifact(X[:, :1], np.array([4, 0]))[0].shape == (4, 0)


def _others(given: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    """Return the first operand changed by one, which gives another size in each case."""
    return [(given[0] + 1, *given[1:])]
