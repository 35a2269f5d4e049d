"""A loop state that is a scalar first and a vector of one element later becomes a vector."""

from __future__ import annotations

import numpy as np
import pytest
from rewrites import check_unchanged

import smelt
from smelt.compiler import optimize_model
from smelt.ir import text
from smelt.passes.control_flow.level_loop_states import level_loop_states
from smelt.runtime.onnxruntime import OnnxRuntime


def loop(
    body: str,
    *,
    count: str = "n = Constant<value=int64 {3}>()",
    given: str = "float s, float[1] w",
    result: str = "float[1] y",
) -> str:
    """Return a Loop over ``p``, which starts as ``s`` and becomes ``q`` in each iteration."""
    return (
        f"g ({given}) => ({result}) {{ {count} t = Constant<value=bool {{1}}>() "
        f"y = Loop(n, t, s) <body = b (int64 i, bool c, p) => (bool d, q) "
        f"{{ d = Identity(c) {body} }}> }}"
    )


BRANCH = (
    "z = Constant<value_float=0.5>() k = Less(z, w) o = Constant<value_ints=[0]>() "
    "m = Squeeze(k, o) q = If<then_branch = t1 () => (u) { r = Tanh(p) u = Add(r, w) }, "
    "else_branch = e1 () => (v) { v = Sub(w, p) }>(m)"
)
LEVELLED = {
    "a sum with a vector": "q = Add(p, w)",
    "by way of other operators": "a = Exp(p) e = Neg(a) q = Mul(e, w)",
    "in branches": BRANCH,
    "several readers": "a = Mul(p, w) e = Max(w, p) q = Sub(a, e)",
}


@pytest.mark.parametrize("body", LEVELLED.values(), ids=LEVELLED)
@pytest.mark.parametrize("target", ["host", "c"])
def test_results_are_those_of_onnx_runtime(body: str, target: str) -> None:
    source = text.parse(loop(body), 23)
    artifact = smelt.compile(source.clone(), target=target)
    for w in (0.2, 0.8):
        given = np.float32(0.3), np.array([w], np.float32)
        (want,) = OnnxRuntime(source)(*given)
        (got,) = artifact(*given)
        np.testing.assert_allclose(got, want, rtol=1e-6)


def test_the_start_is_a_vector_of_one() -> None:
    model = text.parse(loop("q = Add(p, w)"), 23)
    optimize_model(model, pipeline="level-loop-states")
    kinds = [node.op_type for node in model.graph if node.op_type != "Constant"]
    assert kinds == ["Unsqueeze", "Loop"]


SIZE = "z = Constant<value_ints=[-1]>() a = Shape(p) e = ReduceSum(a) f = Cast<to=1>(e) "
UNCHANGED = {
    "a scalar in each round": loop("q = Exp(p)", result="float y"),
    "a vector from the first": loop("q = Add(p, w)", given="float[1] s, float[1] w"),
    "perhaps no round": loop("q = Add(p, w)", count="", given="int64 n, float s, float[1] w"),
    "its shape is read": loop(SIZE + "q = Add(w, f)"),
    "it is put behind others": loop(
        "z = Constant<value_ints=[0]>() a = Unsqueeze(p, z) q = Add(a, w)"
    ),
    "it meets a scalar alone": loop(
        "a = Mul(p, p) z = Constant<value_ints=[0]>() e = Unsqueeze(a, z) q = Add(e, w)"
    ),
    "another state takes it": "g (float s, float[1] w) => (float[1] y, float v) { "
    "n = Constant<value=int64 {3}>() t = Constant<value=bool {1}>() y, v = Loop(n, t, s, s) "
    "<body = b (int64 i, bool c, p, r) => (bool d, q, u) "
    "{ d = Identity(c) q = Add(p, w) u = Neg(p) }> }",
    "the number of its dims is read": loop(
        "a = Shape(p) e = Size(a) f = Cast<to=1>(e) q = Add(w, f)"
    ),
}


@pytest.mark.parametrize("source", UNCHANGED.values(), ids=UNCHANGED)
def test_unchanged(source: str) -> None:
    check_unchanged(level_loop_states, source)
