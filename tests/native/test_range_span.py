"""A Range whose limit is counted from its start has a bound, although data tell both."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import ErrorList, UsageError
from smelt.ir import text
from smelt.runtime.onnxruntime import OnnxRuntime


def rows(limit: str, step: int = 1) -> str:
    """The rows of ``x`` from ``s`` to a limit ``e``, summed."""
    return (
        "g (float[9,4] x, int64 s, int64 n) => (float[4] y) { "
        f"{limit} d = Constant<value=int64 {{{step}}}>() r = Range(s, e, d) k = Gather(x, r) "
        "a = Constant<value_ints=[0]>() y = ReduceSum<keepdims=0>(k, a) }"
    )


TWO = "t = Constant<value=int64 {2}>() "
BOUNDED = {
    "two further": rows(TWO + "e = Add(s, t)"),
    "the lesser of two": rows(TWO + "b = Add(t, s) e = Min(n, b)"),
    "of the lesser": rows(TWO + "b = Min(s, n) e = Add(b, t)"),
    "less one": rows(TWO + "o = Constant<value=int64 {1}>() b = Add(s, t) e = Sub(b, o)"),
    "in floats": rows(
        "t = Constant<value_float=2.0>() f = Cast<to=1>(s) b = Add(f, t) e = Cast<to=7>(b)"
    ),
    "by way of vectors": rows(
        "v = Constant<value_ints=[1]>() t = Constant<value_ints=[2]>() z = Reshape(s, v) "
        "b = Add(z, t) o = Constant<value_ints=[0]>() e = Squeeze(b, o)"
    ),
    "every other": rows("t = Constant<value=int64 {3}>() e = Add(s, t)", 2),
}


@pytest.mark.parametrize("graph", BOUNDED.values(), ids=BOUNDED)
def test_results_are_those_of_onnx_runtime(graph: str) -> None:
    source = text.parse(graph, 23)
    artifact = smelt.compile(source.clone(), target="c")
    x = np.arange(36, dtype=np.float32).reshape(9, 4)
    for start, most in ((0, 9), (3, 4), (5, 5), (6, 2)):
        given = x, np.array(start), np.array(most)
        (want,) = OnnxRuntime(source)(*given)
        (got,) = artifact(*given)
        np.testing.assert_array_equal(got, want)


OPEN = {
    "another number": rows("e = Identity(n)"),
    "twice the start": rows(TWO + "e = Mul(s, t)"),
    "backwards": rows(TWO + "e = Add(s, t)", -1),
    "a sum of two numbers": rows("e = Add(s, n)"),
}


@pytest.mark.parametrize("graph", OPEN.values(), ids=OPEN)
def test_ranges_without_bound_are_refused(graph: str) -> None:
    with pytest.raises(ErrorList, match="E411"):
        smelt.compile(text.parse(graph, 23), target="c")


def test_floats_that_round_end_the_run() -> None:
    """2^24 + 1 is no float: the limit is 3 beyond the start."""
    artifact = smelt.compile(text.parse(BOUNDED["in floats"], 23), target="c")
    with pytest.raises(UsageError, match="E670"):
        artifact(np.zeros((9, 4), np.float32), np.array(2**24 + 3), np.array(9))
