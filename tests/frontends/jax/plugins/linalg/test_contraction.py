"""Contractions."""

from __future__ import annotations

import jax.numpy as jnp
import pytest


@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_a_sum_of_nothing_is_zeros_and_no_contraction(check, dtype):
    """Einsum of ONNX Runtime ends the process where the contracted size is 0."""
    model = check(lambda x: jnp.einsum("bik,bjk->bij", x, x), f"{dtype}[B,2,0]")
    assert "DotGeneral" not in {node.op_type for node in model.graph}
    check(lambda x: x @ jnp.zeros((0, 3), x.dtype), f"{dtype}[0]")
