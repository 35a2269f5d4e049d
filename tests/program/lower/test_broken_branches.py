"""A branch whose operands never fit aborts the runs that take it, and only those."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError, UsageError
from smelt.ir import text
from smelt.targets.base import Artifact

X = np.arange(6, dtype=np.float32).reshape(2, 3)
ONES = "float[2,3] x, float[2,4] w, bool c"


def model(then: str, otherwise: str, *, given: str = ONES, result: str = "float[2,3] y") -> str:
    return (
        f"g ({given}) => ({result}) {{ y = If<then_branch = t () => (p) {{ {then} }}, "
        f"else_branch = e () => (q) {{ {otherwise} }}>(c) }}"
    )


BROKEN = {
    "an Add of other sizes": "p = Add(x, w)",
    "images of 2 dims": "p = DepthToSpace<blocksize=2>(x)",
    "an LSTM of 2 dims": "p, h, s = LSTM<hidden_size=4>(x, w, w)",
    "after what can run": "a = Exp(x) b = Add(a, w) p = Neg(b)",
}


def compiled(source: str, target: str) -> Artifact:
    options = {"engine": "numpy"} if target == "host" else {}
    return smelt.compile(text.parse(source, 23), target=target, **options)


def check_the_broken_branch_fails(artifact: Artifact, inputs: Sequence[np.ndarray]) -> None:
    (result,) = artifact(*inputs, np.array(False))
    np.testing.assert_array_equal(result, -X)
    with pytest.raises(UsageError, match="E670"):
        artifact(*inputs, np.array(True))


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_host(broken: str) -> None:
    artifact = compiled(model(broken, "q = Neg(x)"), "host")
    check_the_broken_branch_fails(artifact, (X, np.ones((2, 4), np.float32)))


def test_c() -> None:
    """Without the abort, the C code would read beyond the end of operands."""
    artifact = compiled(model(BROKEN["an Add of other sizes"], "q = Neg(x)"), "c")
    check_the_broken_branch_fails(artifact, (X, np.ones((2, 4), np.float32)))


def test_the_error_names_the_violated_condition() -> None:
    artifact = compiled(model("p = Add(x, w)", "q = Neg(x)"), "host")
    with pytest.raises(UsageError) as caught:
        artifact(X, np.ones((2, 4), np.float32), np.array(True))
    assert "does not hold" in caught.value.why
    assert caught.value.fix


def test_a_broken_node_without_readers_is_ignored() -> None:
    artifact = compiled(model("u = Add(x, w) p = Exp(x)", "q = Neg(x)"), "host")
    (result,) = artifact(X, np.ones((2, 4), np.float32), np.array(True))
    np.testing.assert_allclose(result, np.exp(X), rtol=1e-6)


def test_two_broken_branches_are_refused() -> None:
    with pytest.raises(SmeltError, match="both branches fail in every run"):
        compiled(model("p = Add(x, w)", "q = Mul(x, w)"), "c")


LOOP = """g (float[2,3] x, float[2,4] w, int64 n) => (float[2,3] y) { t = Constant<value=bool {1}>()
  y = Loop(n, t, x) <body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] f) {
    d = Identity(c) f = Add(s, w) }> }"""


@pytest.mark.parametrize("target", ["host", "c"])
def test_a_loop_body_that_cannot_run_is_refused(target: str) -> None:
    """The loop might run no iteration, but any other run would fail."""
    with pytest.raises(SmeltError, match="does not hold"):
        compiled(LOOP, target)
