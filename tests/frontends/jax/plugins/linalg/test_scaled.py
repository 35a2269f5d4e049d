"""Products with a scale for each block."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from smelt.frontends.jax import trace


@pytest.mark.parametrize("to", [np.float32, jnp.bfloat16], ids=["f32", "bf16"])
def test_scaled_dot(check, to):
    def fn(a, b, s, t):
        y = lax.scaled_dot(a, b, lhs_scale=s, rhs_scale=t, preferred_element_type=to)
        return y.astype(np.float32)

    check(fn, "f32[2,3,8]", "f32[2,8,5]", "f32[2,3,2]", "f32[2,4,5]", rtol=1e-2, atol=1e-2)


def test_scaled_matmul_is_what_its_formula_says(computed):
    rng = np.random.default_rng(0)
    shapes = ((2, 3, 8), (2, 5, 8), (2, 3, 2), (2, 5, 2))
    a, b, s, t = (rng.normal(size=shape).astype(np.float32) for shape in shapes)
    model = trace(jax.nn.scaled_matmul, *(jax.ShapeDtypeStruct(x, "f4") for x in shapes))
    expected = np.einsum("bmk,bnk->bmn", a * s.repeat(4, -1), b * t.repeat(4, -1))
    np.testing.assert_allclose(computed(model, [a, b, s, t])[0], expected, rtol=1e-5, atol=1e-5)
