"""Elementwise operators of several operands."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

FLOATS = np.array([0.0, -0.0, 1.5, -2.5, 1e30, np.inf, -np.inf, np.nan], np.float32)
PAIRS = [a.ravel() for a in np.meshgrid(FLOATS, FLOATS)]
WHOLE = np.array([0, 1, -1, 7, -7, 2**31 - 1, -(2**31)], np.int32)
WHOLE_PAIRS = [a.ravel() for a in np.meshgrid(WHOLE, WHOLE)]

ON_FLOATS = [
    *(lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.max, lax.min, lax.pow, lax.atan2),
    *(lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge),
]
ON_INTEGERS = [
    *(lax.add, lax.sub, lax.mul, lax.div, lax.rem, lax.max, lax.min),
    *(lax.eq, lax.ne, lax.lt, lax.le, lax.gt, lax.ge),
    *(lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor),
]
SHIFTS = [lax.shift_left, lax.shift_right_logical, lax.shift_right_arithmetic]
BOOLEANS = [np.array([0, 0, 1, 1], bool), np.array([0, 1, 0, 1], bool)]


def named(fn):
    return fn.__name__


@pytest.mark.parametrize("fn", ON_FLOATS, ids=named)
def test_floats_with_nan_and_infinities(check, fn):
    check(fn, "f32[64]", "f32[64]", inputs=[PAIRS], rtol=1e-6)


@pytest.mark.parametrize("fn", ON_INTEGERS, ids=named)
def test_integers_at_their_limits(check, fn):
    check(fn, "i32[49]", "i32[49]", inputs=[WHOLE_PAIRS])


@pytest.mark.parametrize("fn", [lax.max, lax.min], ids=named)
@pytest.mark.parametrize("name", ["i16", "u16", "i64", "u64"])
def test_extremes_compare_every_bit(check, fn, name):
    dtype = np.dtype(f"{name[0]}{int(name[1:]) // 8}")
    high = np.iinfo(dtype).max // 2
    values = np.array([high, high + 1, high - 1, 0, 1, np.iinfo(dtype).min], dtype)
    pairs = [a.ravel() for a in np.meshgrid(values, values)]
    check(fn, f"{name}[36]", f"{name}[36]", inputs=[pairs], x64=True)


def test_clamps_long_integers(check):
    x = np.array([2**40 + 5, 2**40 + 1, -(2**40), 7], np.int64)
    check(
        lambda x: lax.clamp(np.int64(8), x, np.int64(2**40 + 3)), "i64[4]", inputs=[[x]], x64=True
    )


@pytest.mark.parametrize("fn", [lax.div, lax.rem], ids=named)
@pytest.mark.parametrize("divisor", [0, 1, -1, 3, -3])
def test_division_by_a_constant(check, fn, divisor):
    check(lambda x: fn(x, np.int32(divisor)), "i32[7]", inputs=[[WHOLE]])


@pytest.mark.parametrize("fn", [lax.div, lax.rem], ids=named)
def test_unsigned_division(check, fn):
    check(fn, "u32[3]", "u32[3]", inputs=[[[5, 4000000000, 7], [3, 7, 0]]])


@pytest.mark.parametrize("fn", [lax.div, lax.rem], ids=named)
@pytest.mark.parametrize("name", ["i8", "u8", "i16", "u16", "i64", "u64"])
def test_division_in_every_width(check, fn, name):
    limits = np.iinfo(f"{name[0]}{int(name[1:]) // 8}")
    ends = [limits.min, limits.min + 1, limits.max, limits.max - 1, limits.max // 3]
    values = np.array([*ends, 0, 1, 7, 3, *([-1, -7] if limits.min else [])], limits.dtype)
    pairs = [a.ravel() for a in np.meshgrid(values, values)]
    spec = f"{name}[{pairs[0].size}]"
    check(fn, spec, spec, inputs=[pairs], x64=True)
    check(
        lambda x: fn(x, np.asarray(7, x.dtype)),
        f"{name}[{values.size}]",
        inputs=[[values]],
        x64=True,
    )


@pytest.mark.parametrize("fn", [jnp.floor_divide, jnp.mod, jnp.remainder, jnp.fmod], ids=named)
def test_division_as_numpy_spells_it(check, fn):
    a, b = (np.array(v, np.int32) for v in ([7, -7, 7, -7, 0], [3, 3, -3, -3, 5]))
    check(fn, "i32[5]", "i32[5]", inputs=[[a, b]])
    check(fn, "f32[5]", "f32[5]", inputs=[[a, b]])


@pytest.mark.parametrize("fn", SHIFTS, ids=named)
@pytest.mark.parametrize("dtype", ["i32", "u32", "i8", "u8"])
def test_shifts_by_any_count(check, fn, dtype):
    x = [1, 5, 100, 127] if dtype[0] == "u" else [1, -5, -100, 127]
    values = [a.ravel() for a in np.meshgrid(x, [0, 1, 7, 8, 31, 32])]
    check(fn, f"{dtype}[24]", f"{dtype}[24]", inputs=[values])


@pytest.mark.parametrize(
    "fn",
    [lax.bitwise_and, lax.bitwise_or, lax.bitwise_xor, lax.eq, lax.ne, lax.lt, lax.max, lax.min],
    ids=named,
)
def test_booleans(check, fn):
    check(fn, "bool[4]", "bool[4]", inputs=[BOOLEANS])


MASKED = {
    "booleans": lambda x, m: (x * m, m * x, x * (x > 1)),
    "half floats": lambda x, m: x.astype(jnp.float16) * m,
    "converted": lambda x, m: x * m.astype(jnp.float32),
    "broadcast": lambda x, m: (x[:, None] * m, x * m[3]),
    "integers between": lambda x, m: x * m.astype(jnp.int32),
    "two masks": lambda x, m: m.astype(jnp.float32) * (x > 0),
}


@pytest.mark.parametrize("name", MASKED)
def test_nan_times_false_is_zero_where_xla_selects(check, name):
    for mask in (np.arange(8) % 2 == 0, np.arange(8) % 2 == 1):
        check(MASKED[name], "f32[8]", "bool[8]", inputs=[[FLOATS, mask]], compiled=True)


def test_a_product_with_booleans_is_a_choice(check):
    model = check(lambda x, m: x * m, "f32[B,4]", "bool[B,4]")
    assert [node.op_type for node in model.graph if node.op_type != "Cast"] == ["Where"]
    model = check(lambda x, m: x * m, "i32[B,4]", "bool[B,4]")
    assert [node.op_type for node in model.graph] == ["Cast", "Mul"]


def test_clamp_propagates_nan(check):
    check(lambda x: lax.clamp(jnp.float32(-1), x, jnp.float32(2)), "f32[8]", inputs=[[FLOATS]])
    check(lax.clamp, "f32[4]", "f32[4]", "f32[4]")


def test_select(check):
    check(jnp.where, "bool[B,4]", "f32[B,4]", "f32[B,4]")
    check(jnp.where, "bool[4]", "bool[4]", "bool[4]")
    check(lambda p, x: jnp.where(p, x, 0), "bool[]", "f32[B,4]", inputs=[[True, np.ones((2, 4))]])
    check(
        lax.select_n,
        "i32[6]",
        *["f32[6]"] * 3,
        inputs=[[[0, 1, 2, 2, 1, 0], *np.arange(18.0).reshape(3, 6)]],
    )


def test_broadcasts_are_left_to_the_operators(check):
    model = check(lambda x: x * jnp.ones((x.shape[0], 4)) + jnp.arange(4.0), "f32[B,4]")
    assert [node.op_type for node in model.graph] == ["Mul", "Add"]


def test_a_broadcast_that_is_returned_is_made(check):
    check(lambda x: (jnp.ones((x.shape[0], 4)), jnp.zeros((3,)) + 1), "f32[B]")
    check(lambda x: jnp.broadcast_to(x[:, None, :], (x.shape[0], 3, 4)).sum(1), "f32[B,4]")
