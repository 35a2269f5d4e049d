"""The state of a loop may start as a view whose strides differ from those of later iterations."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.ir import text

LOOP = """g (float[2,4] x, float[4,4] w) => (float[2,3,4] o) <int64 n = {3}, int64[1] one = {1},
int64[3] wide = {2,3,4}, int64[2] flat = {6,4}> {
u = Unsqueeze(x, one)
s = Expand(u, wide)
o = Loop(n, , s) <body = b (int64 i, bool go, float[2,3,4] c) => (bool on, float[2,3,4] d) {
on = Identity(go)
%s
}>
}"""
ROUNDS = {
    "a product of its rows": "r = Reshape(c, flat) m = MatMul(r, w) t = Tanh(m) d = Reshape(t, wide)",
    "its rows in another form": "r = Reshape(c, flat) t = Tanh(r) d = Reshape(t, wide)",
}


@pytest.mark.parametrize("engine", ["numpy", "native"])
@pytest.mark.parametrize("steps", ROUNDS.values(), ids=ROUNDS.keys())
def test_a_state_that_starts_as_a_broadcast_view(steps: str, engine: str) -> None:
    model = text.parse(LOOP % steps)
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape).astype(np.float32) for shape in ((2, 4), (4, 4))]
    state = np.repeat(given[0][:, None], 3, axis=1)
    for _ in range(3):
        state = np.tanh(state @ given[1] if "MatMul" in steps else state)
    (found,) = smelt.compile(model, target="host", engine=engine)(*given)
    np.testing.assert_allclose(found, state, rtol=1e-4, atol=1e-6)
