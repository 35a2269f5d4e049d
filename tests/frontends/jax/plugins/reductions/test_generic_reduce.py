"""Reductions by any function, by bitwise operators, and of integers that overflow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from sampling import sampled

from smelt.errors import Unsupported
from smelt.frontends.jax import trace
from smelt.frontends.jax.call.specs import DTYPES

ZERO, ONE = np.float32(0), np.float32(1)


def sum_and_product(x):
    pair = lambda a, b: (a[0] + b[0], a[1] * b[1])  # noqa: E731
    return lax.reduce((x, jnp.cos(x)), (ZERO, ONE), pair, (1,))


def largest_and_place(x):
    def later(a, b):
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] <= b[1]))
        return jnp.where(first, a[0], b[0]), jnp.where(first, a[1], b[1])

    at = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    return lax.reduce((x, at), (np.float32(-np.inf), np.int32(2**31 - 1)), later, (1,))


COMPUTATIONS = {
    "two at once": sum_and_product,
    "largest and its place": largest_and_place,
    "logaddexp": lambda x: lax.reduce(x, np.float32(-np.inf), jnp.logaddexp, (0, 2)),
    "last positive": lambda x: lax.reduce(
        x, np.float32(-1), lambda a, b: jnp.where(b > 0, b, a), (0, 1)
    ),
    "over nothing": lambda x: lax.reduce(x, np.float32(-np.inf), jnp.logaddexp, ()),
}


@pytest.mark.parametrize("fn", COMPUTATIONS.values(), ids=COMPUTATIONS.keys())
@pytest.mark.parametrize("shape", ["3,5,4", "1,1,1", "2,0,3", "B,S,2"])
def test_computations_of_ones_own(check, fn, shape):
    check(fn, f"f32[{shape}]", rtol=1e-4, atol=1e-5)


def test_the_initial_value_counts_once(check):
    for shape in ("3,5", "0,2", "B,S"):
        check(lambda x: lax.reduce(x, np.float32(2), lax.add, (0, 1)), f"f32[{shape}]", rtol=1e-4)
        check(lambda x: lax.reduce(x, np.float32(0), lax.max, (1,)), f"f32[{shape}]")


@pytest.mark.parametrize("size", ["33", "B"])
def test_an_order_that_jax_does_not_keep_is_refused(size):
    with pytest.raises(Unsupported, match="not associative"):
        trace(lambda x: lax.reduce(x, ZERO, lambda a, b: a - b, (0,)), f"f32[{size}]")


LITERAL = {
    "difference": (ZERO, lambda a, b: a - b),
    "halves": (np.float32(0.3), lambda a, b: a * 0.5 + b * 0.25),
    "larger": (np.float32(-10), lambda a, b: jnp.where(a > b, a, b)),
    "smaller or equal": (np.float32(2.5), lambda a, b: jnp.where(a <= b, a, b)),
    "clamped": (ZERO, lambda a, b: jnp.clip(a + b, -2, 3)),
}
IN_ORDER = {"xla_cpu_use_fusion_emitters": True}
"""The default of JAX, by which it reduces axes in the order of memory."""

SPECIAL = np.array([[1, np.nan, 2, -0.0], [np.inf, 0, -np.inf, np.nan]], np.float32)


@pytest.mark.parametrize("name", sampled(LITERAL, 2))
def test_computations_not_known_to_be_monoids_keep_their_order(check, name):
    start, computation = LITERAL[name]
    for dims in ((0,), (1,), (0, 2), (2, 0), (0, 1, 2)):
        fn = lambda x, d=dims: lax.reduce(x, start, computation, d)  # noqa: E731
        check(fn, "f32[2,3,4]", rtol=1e-5, compiler_options=IN_ORDER)
        if dims in ((0,), (1,), (0, 1, 2)):  # nothing left, nothing reduced, both
            check(fn, "f32[2,0,3]")
    check(lambda x: lax.reduce(x, start, computation, (1,)), "f32[2,4]", inputs=[[SPECIAL]])


def test_operands_that_are_reduced_each_by_its_own_monoid_need_no_loop():
    def fn(x):
        pair = lambda a, b: (b[0] + a[0], a[1] * b[1])  # noqa: E731
        return lax.reduce((x, x), (ZERO, ONE), pair, (0,))

    assert "Scan" not in {node.op_type for node in trace(fn, "f32[64]").graph}


def test_operands_that_cross_are_no_monoids_of_their_own(check):
    crossed = lambda a, b: (a[1] + b[0], a[0] * b[1])  # noqa: E731
    check(lambda x: lax.reduce((x, x), (ZERO, ONE), crossed, (0,)), "f32[5,2]")
    doubled = lambda a, b: a + a  # noqa: E731
    check(lambda x: lax.reduce(x, ONE, doubled, (0,)), "f32[5,2]")


@pytest.mark.parametrize("fn", [lax.reduce_and, lax.reduce_or, lax.reduce_xor])
@pytest.mark.parametrize("dtype", ["bool", "i32", "u8", "i16", "u32"])
def test_bitwise_reductions(check, fn, dtype):
    for shape in ("3,5", "2,0", "B,S"):
        check(lambda x: (fn(x, (1,)), fn(x, ())), f"{dtype}[{shape}]")


BIG = {
    "i32": [[2**31 - 1, 2**31 - 1, 7], [-(2**31), -1, 3]],
    "u32": [[2**32 - 1, 1, 2**31], [2**32 - 2, 2**32 - 5, 0]],
    "i64": [[2**63 - 1, 1, 2**32], [2**32 - 1, -1, 2**60 + 1]],
    "u64": [[2**64 - 1, 2, 0], [2**63, 2**32 - 1, 2**60 + 1]],
    "i8": [[127, 127, 127], [-128, -1, -1]],
}
INTEGER_FNS = {
    "sum": lax.reduce_sum,
    "product": lax.reduce_prod,
    "max": lax.reduce_max,
    "min": lax.reduce_min,
}


@pytest.mark.parametrize("fn", INTEGER_FNS.values(), ids=INTEGER_FNS.keys())
@pytest.mark.parametrize("dtype", BIG)
def test_integers_wrap_and_keep_all_bits(check, fn, dtype):
    rows = np.array(BIG[dtype], DTYPES[dtype])
    for shape in ("2,3", "B,S"):

        def each(x):
            return [fn(x, axes) for axes in ((0,), (1,), (0, 1))]

        check(each, f"{dtype}[{shape}]", inputs=[[rows]], x64=True)


RUNNING = [lax.cumsum, lax.cumprod, lax.cummax, lax.cummin, lax.cumlogsumexp]


@pytest.mark.parametrize("fn", sampled(RUNNING, 2), ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("shape", ["3,7", "S,3", "0,3", "1,1"])
def test_running_in_both_directions(check, fn, shape):

    def run(x):
        return [fn(x, axis, reverse) for axis in (0, 1) for reverse in (False, True)]

    check(run, f"f32[{shape}]", rtol=1e-4, atol=1e-5)
    if fn is not lax.cumlogsumexp:
        check(run, f"i32[{shape}]")


@pytest.mark.parametrize("fn", RUNNING, ids=lambda fn: fn.__name__)
@pytest.mark.parametrize("shape", ["3,4", "3,S"])
def test_running_through_infinities_and_nan(check, fn, shape):
    rows = [[1, -np.inf, 2, np.inf], [0, np.nan, 1, 2], [-np.inf, -np.inf, -np.inf, 3]]

    def run(x):
        return [fn(x, 1, reverse) for reverse in (False, True)]

    check(run, f"f32[{shape}]", inputs=[[rows]], rtol=1e-5)


@pytest.mark.parametrize("dtype", ["i8", "u8", "u32", "i64", "u64", "f16", "f64"])
def test_running_element_types(check, dtype):
    near = 2e-2 if dtype == "f16" else 1e-12

    def run(x):
        return [fn(x, 1) for fn in RUNNING[:4]]

    check(run, f"{dtype}[2,5]", x64=True, rtol=near, atol=near)


def test_associative_scan(check):
    for fn in (jnp.add, jnp.maximum, jnp.multiply):
        check(lambda x, f=fn: lax.associative_scan(f, x, axis=1), "f32[B,7]", rtol=1e-4, atol=1e-5)
    affine = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])  # noqa: E731
    check(
        lambda x, y: lax.associative_scan(affine, (x, y), reverse=True),
        "f32[6,2]",
        "f32[6,2]",
        rtol=1e-4,
        atol=1e-5,
    )


def test_derivatives(check):
    for fn in (lax.cumprod, lax.cumlogsumexp, lax.cummax):
        check(jax.grad(lambda x, f=fn: (f(x, 1) ** 2).sum()), "f32[2,4]", rtol=1e-3, atol=1e-4)
