"""``dot_general`` over no elements."""

from __future__ import annotations

import jax.numpy as jnp
import pytest


@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_an_empty_contraction_is_zeros(check, dtype):
    """ONNX Runtime's Einsum ends the process if the contracted size is 0."""
    model = check(lambda x: jnp.einsum("bik,bjk->bij", x, x), f"{dtype}[B,2,0]")
    assert "DotGeneral" not in {node.op_type for node in model.graph}
    check(lambda x: x @ jnp.zeros((0, 3), x.dtype), f"{dtype}[0]")
