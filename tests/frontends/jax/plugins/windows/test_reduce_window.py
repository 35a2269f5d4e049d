"""Windows reduced by sums, extremes, products and any function."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from sampling import sampled

from smelt.errors import Unsupported
from smelt.frontends.jax import trace
from smelt.runtime.runner import open_runner

WINDOWS = {
    "valid": {"dims": (2, 3)},
    "strides": {"dims": (3, 2), "strides": (2, 1)},
    "same": {"dims": (3, 3), "padding": "SAME"},
    "wide padding": {"dims": (2, 2), "padding": ((3, 1), (0, 5))},
    "negative padding": {"dims": (2, 2), "padding": ((-1, 2), (1, -2))},
    "window dilation": {"dims": (2, 3), "dilation": (3, 2)},
    "base dilation": {"dims": (3, 2), "base": (2, 3), "padding": "SAME"},
    "everything": {
        "dims": (5, 3),
        "strides": (2, 3),
        "padding": ((2, 1), (4, 3)),
        "base": (2, 1),
        "dilation": (1, 3),
    },
    "all": {"dims": (6, 7)},
    "larger than all": {"dims": (8, 2)},
}

MONOIDS = {
    "sum": (lax.add, 0),
    "max": (lax.max, None),
    "min": (lax.min, None),
    "product": (lax.mul, 1),
    "sum from 1": (lax.add, 1),
    "max from 0": (lax.max, 0),
}


def window(computation, start, dims, strides=None, padding="VALID", base=None, dilation=None):
    strides = strides or (1,) * len(dims)

    def fn(x):
        initial = start
        if start is None:
            floats = jnp.issubdtype(x.dtype, jnp.floating)
            low = -np.inf if floats else jnp.iinfo(x.dtype).min
            high = np.inf if floats else jnp.iinfo(x.dtype).max
            initial = low if computation is lax.max else high
        initial = np.asarray(initial, x.dtype)
        return lax.reduce_window(x, initial, computation, dims, strides, padding, base, dilation)

    return fn


def by_every_monoid(**options):
    """The windows reduced by each of ``MONOIDS``, in their order."""
    return lambda x: [window(*monoid, **options)(x) for monoid in MONOIDS.values()]


@pytest.mark.parametrize("options", WINDOWS.values(), ids=WINDOWS.keys())
def test_every_window(check, options):
    check(by_every_monoid(**options), "f32[6,7]", rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["i32", "i8", "u8", "u16", "u32", "f16", "bf16"])
def test_element_types(check, dtype):
    near = {"f16": 2e-2, "bf16": 2e-1}.get(dtype, 0)
    fn = by_every_monoid(dims=(2, 3), padding="SAME")
    if dtype == "bf16":
        fn, dtype = inside(fn), "f32"
    check(fn, f"{dtype}[4,5]", rtol=near, atol=near)


def inside(fn):
    """The function converts to bfloat16 itself, because ONNX Runtime cannot be fed bfloat16."""
    return lambda x: [y.astype(jnp.float32) for y in fn(x.astype(jnp.bfloat16))]


@pytest.mark.parametrize("dtype", ["i64", "f64"])
def test_64_bits(check, dtype):
    fn = by_every_monoid(dims=(2, 3), padding="SAME")
    check(fn, f"{dtype}[4,5]", x64=True, rtol=1e-12)


def test_integers_wrap_and_reach_their_bounds(check):
    rows = np.array([[2**31 - 1, 1, -(2**31)], [-1, 7, 2**31 - 1]], np.int32)
    check(by_every_monoid(dims=(2, 2), padding="SAME"), "i32[2,3]", inputs=[[rows]])


def test_long_integers_are_compared_whole(check):
    rows = np.array([[2**32 - 1, 0, 5], [1, 2**31, -1]])
    for name in ("max", "min"):
        check(window(*MONOIDS[name], dims=(2, 2)), "i64[2,3]", inputs=[[rows]], x64=True)


def test_a_window_of_padding_only(check):
    for dtype in ("f32", "i32"):
        for name in ("sum", "max", "min"):
            check(window(*MONOIDS[name], dims=(2,), padding=((4, 3),)), f"{dtype}[2]")
            dilated = window(*MONOIDS[name], dims=(2,), padding=((1, 1),), dilation=(2,))
            check(dilated, f"{dtype}[1]")


def test_nothing_fits(check):
    for dtype in ("f32", "i32"):
        check(window(lax.add, 0, dims=(4, 1)), f"{dtype}[3,2]")
        check(window(lax.max, None, dims=(1, 2)), f"{dtype}[0,2]")


def test_many_dims(check):
    check(window(lax.max, None, dims=(2, 2, 2, 2)), "f32[2,3,4,5]")
    check(window(lax.add, 0, dims=(2, 3, 2, 1, 2), padding="SAME"), "f32[2,3,2,1,3]", rtol=1e-4)


def test_no_dims(check):
    check(window(lax.mul, 1, dims=()), "f32[]")
    check(window(lax.max, None, dims=()), "i32[]")


def test_symbolic_sizes(check):
    sizes = ({"B": 5, "S": 9}, {"B": 8, "S": 4})
    fn = by_every_monoid(dims=(3, 2), strides=(2, 1), padding=((1, 1), (0, 2)))
    check(fn, "i32[B,S]", sizes=sizes)
    check(fn, "f32[B,S]", sizes=sizes, rtol=1e-4, atol=1e-5)


def test_logical(check):
    for computation, start in ((lax.bitwise_and, True), (lax.bitwise_or, False)):
        check(window(computation, start, dims=(2, 3), padding="SAME"), "bool[4,5]")
    for computation, start in ((lax.bitwise_and, -1), (lax.bitwise_or, 0), (lax.bitwise_xor, 0)):
        check(window(computation, start, dims=(2, 3), padding="SAME"), "i32[4,5]")


def logaddexp(x):
    return lax.reduce_window(
        x, -np.float32(np.inf), jnp.logaddexp, (3, 2), (1, 2), ((1, 1), (0, 2)), (1, 2), (2, 1)
    )


def latest(x):
    """The last positive number of a window, which depends on the order."""
    return lax.reduce_window(
        x, np.float32(-1), lambda a, b: jnp.where(b > 0, b, a), (5, 2), (1, 1), "VALID"
    )


def argmax(x):
    def later(a, b):
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] <= b[1]))
        return tuple(jnp.where(first, p, q) for p, q in zip(a, b, strict=True))

    at = lax.broadcasted_iota(jnp.int32, x.shape, 1)
    start = (np.float32(-np.inf), np.int32(2**31 - 1))
    return lax.reduce_window((x, at), start, later, (2, 3), (1, 2), ((1, 0), (1, 1)))


@pytest.mark.parametrize("fn", [logaddexp, latest, argmax], ids=lambda fn: fn.__name__)
def test_computations_of_ones_own(check, fn):
    check(fn, "f32[6,7]", rtol=1e-4, atol=1e-5)
    check(fn, "f32[B,S]", sizes=({"B": 6, "S": 5}, {"B": 5, "S": 8}), rtol=1e-4, atol=1e-5)


def test_infinities_and_nan_in_a_product(check):
    rows = np.array([[np.inf, 0, 1, -np.inf], [np.nan, 2, -0.0, 3]], np.float32)
    check(window(lax.mul, 1, dims=(1, 2)), "f32[2,4]", inputs=[[rows]])
    check(window(lax.add, 0, dims=(1, 2)), "f32[2,4]", inputs=[[rows]])
    check(window(lax.max, 0, dims=(1, 2)), "f32[2,4]", inputs=[[rows]])


def test_derivative_of_a_product(check):
    fn = window(lax.mul, 1, dims=(2, 2), padding="SAME")
    check(lambda x, t: jax.jvp(fn, (x,), (t,)), "f32[3,4]", "f32[3,4]", rtol=1e-4, atol=1e-5)


def larger(a, b):
    """Not ``max``: NaN fails every test."""
    return jnp.where(a > b, a, b)


FAR = np.full((4, 5), -50, np.float32)
SPECIAL = np.array(
    [
        [np.nan, 1, -0.0, 0, 5],
        [0, np.nan, 2, np.nan, -4],
        [-0.0, -0.0, 0, -3, np.nan],
        [-0.0, -0.0, 0, 1, -0.0],
    ],
    np.float32,
)

CUSTOM = {
    "larger": (larger, -10.0),
    "larger than a number that samples never pass": (larger, 2.5),
    "larger but for NaN": (lambda a, b: jnp.where((a > b) | jnp.isnan(b), a, b), -1e9),
    "halves": (lambda a, b: a * 0.5 + b * 0.25, 0.3),
    "difference": (lambda a, b: a - b, 0.0),
    "the first": (lambda a, b: a, 7.0),
    "the last": (lambda a, b: b, 7.0),
    "a sum that stops": (lambda a, b: jnp.where(a > 100.0, a, a + b), 0.0),
    "logaddexp from 0.5": (jnp.logaddexp, 0.5),
    "a sum from 0": (lambda a, b: b + a, 0.0),
}


ORDERED = {"halves", "difference", "the first", "the last"}
"""What depends on the order of a window's elements; XLA walks some padded ones by columns."""


@pytest.mark.parametrize("name", sampled(CUSTOM, 2))
@pytest.mark.parametrize(
    "options",
    [
        {"dims": (2, 2)},
        {"dims": (2, 3), "padding": "SAME"},
        {"dims": (3, 3), "padding": ((4, 1), (0, 3)), "strides": (2, 1)},
        {"dims": (2, 3), "base": (2, 1), "dilation": (1, 2), "padding": "SAME"},
    ],
    ids=["valid", "same", "wide", "dilated"],
)
def test_computations_not_known_to_be_monoids_are_not_rewritten(check, name, options):
    computation, start = CUSTOM[name]
    fn = window(computation, start, **options)
    if name in ORDERED and options.keys() != {"dims"}:
        with pytest.raises(Unsupported, match="XLA keeps no order here"):
            trace(fn, "f32[4,5]")
        return
    check(fn, "f32[4,5]", inputs=[[FAR], [FAR + 300], [SPECIAL]], rtol=1e-5)
    check(fn, "f32[B,S]", sizes=({"B": 4, "S": 5},), rtol=1e-5)


def test_the_sign_of_a_sum_of_zeros(check):
    model = check(window(lambda a, b: a + b, 0.0, dims=(2,)), "f32[3]", inputs=[[[-0.0] * 3]])
    rows = np.full(3, -0.0, np.float32)
    (got,) = open_runner(model, "onnxruntime")(rows)
    assert not np.signbit(got).any()


def test_an_initial_value_that_is_computed(check):
    def fn(x, start):
        return lax.reduce_window(x, start, larger, (2, 2), (1, 1), "SAME")

    check(fn, "f32[4,5]", "f32[]", inputs=[[FAR, -10], [FAR, -90]])


@pytest.mark.parametrize("name", CUSTOM)
def test_windows_of_one_dim_keep_their_order_in_padding_too(check, name):
    computation, start = CUSTOM[name]
    fn = window(computation, start, dims=(1, 12), padding=((0, 0), (3, 4)), dilation=(1, 2))
    check(fn, "f32[2,30]", rtol=1e-5)
    check(window(computation, start, dims=(5, 1), padding="SAME"), "f32[7,2]", rtol=1e-5)


def test_integers_and_booleans_by_computations_of_ones_own(check):
    nand = lambda a, b: ~(a & b)  # noqa: E731
    check(window(nand, True, dims=(2, 3)), "bool[4,5]")
    check(window(nand, 5, dims=(3, 1), padding="SAME"), "i32[4,5]")
    check(window(larger, 3, dims=(3, 2), padding="SAME"), "u8[4,5]")
    check(window(larger, 3, dims=(3, 2), padding="SAME"), "i16[4,5]")
