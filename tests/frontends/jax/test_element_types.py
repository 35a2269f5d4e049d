"""Arrays of fewer than 16 bits per element can be converted and moved; other operators are refused."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from smelt.errors import SmeltError, Unsupported
from smelt.frontends.jax import trace

SMALL = [jnp.float8_e4m3fn, jnp.float8_e5m2, jnp.int4, jnp.uint4]


@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: dtype.__name__)
def test_rounds_to_a_small_type(check, dtype):
    x = [0, 1, -1, 6.5, 3.25, 7, np.nan, 100, -100, 449, 464, 465, 480, 6e4, 61441, np.inf, -np.inf]
    check(lambda x: x.astype(dtype).astype(jnp.float32), f"f32[{len(x)}]", inputs=[[x]])


@pytest.mark.parametrize("dtype", [*SMALL, jnp.float4_e2m1fn], ids=lambda dtype: dtype.__name__)
def test_refuses_operators_that_onnx_lacks_for_it(dtype):
    with pytest.raises(Unsupported, match="does not take") as caught:
        trace(lambda x: (x.astype(dtype) + x.astype(dtype)).astype(jnp.float32), "f32[3]")
    assert caught.value.code == "E102"
    assert "test_element_types.py" in str(caught.value)


FNUZ = [jnp.float8_e4m3fnuz, jnp.float8_e5m2fnuz]


@pytest.mark.parametrize("dtype", FNUZ, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("source", [jnp.float32, jnp.bfloat16])
def test_types_without_infinity_have_nan_beyond_their_range(check, dtype, source):
    x = [0, -0.0, 1, 3.25, 239, 240, 247, 248, 300, 57344, 61439, 61440, 1e6, np.inf, -np.inf]

    def rounded(x):
        return x.astype(source).astype(dtype).astype(jnp.float32)

    check(rounded, f"f32[{len(x)}]", inputs=[[x]])


def test_refuses_a_type_that_a_later_opset_brings():
    def narrowed(x):
        return x.astype(jnp.int2).astype(jnp.float32)

    with pytest.raises(Unsupported, match="opset 23 does not take") as caught:
        trace(narrowed, "f32[3]", opset=23)
    assert "trace for opset 25" in caught.value.fix
    assert trace(narrowed, "f32[3]", opset=25)


def test_scales_are_read_and_not_made():
    """ONNX rounds to powers of two in another way than JAX, which has NaN for 0."""
    with pytest.raises(Unsupported, match="NaN for 0") as caught:
        trace(lambda x: x.astype(jnp.float8_e8m0fnu).astype(jnp.float32), "f32[3]", opset=24)
    assert caught.value.code == "E102"
    scales = jnp.asarray([1, 0.25, 8], jnp.float8_e8m0fnu)
    assert trace(lambda x: x * scales.astype(jnp.float32), "f32[3]", opset=24)


@pytest.mark.parametrize("name", ["float8_e4m3b11fnuz", "float8_e3m4", "float8_e4m3"])
def test_refuses_types_that_onnx_lacks(name):
    weights = np.ones(3, np.dtype(name))
    uses = {
        "array": lambda x: x * jnp.asarray(weights).astype(jnp.float32),
        "values": lambda x: x.astype(name).astype(jnp.float32),
    }
    for fn in uses.values():
        with pytest.raises(SmeltError) as caught:
            trace(fn, "f32[3]")
        assert "E105" in str(caught.value)
        assert "convert" in str(caught.value)


MOVES = {
    "an update": lambda x, y: lax.dynamic_update_slice(x, y, (1, 0)),
    "rows that are taken": lambda x, y: x[jnp.array([2, 2, 1])],
    "joined": lambda x, y: jnp.concatenate([x, y]),
    "chosen": lambda x, y: jnp.where(jnp.arange(3)[:, None] > 1, x, x[::-1]),
}


@pytest.mark.parametrize("dtype", SMALL, ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("move", MOVES.values(), ids=MOVES.keys())
def test_elements_that_are_only_moved_are_moved_as_wider_ones(check, move, dtype):
    x, y = [[1, -2], [0, 7], [np.inf, np.nan]], [[3, -0.0], [-np.inf, 5]]
    if dtype in (jnp.int4, jnp.uint4):
        x, y = [[1, 2], [0, 7], [5, 3]], [[3, 4], [6, 5]]
    small = lambda a: a.astype(dtype)  # noqa: E731
    moved = lambda x, y: move(small(x), small(y)).astype(jnp.float32)  # noqa: E731
    check(moved, "f32[3,2]", "f32[2,2]", inputs=[[x, y]])
