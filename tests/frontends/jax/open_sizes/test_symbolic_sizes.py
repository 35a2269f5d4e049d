"""JAX functions that require sizes as numbers can be traced at symbolic sizes."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from smelt.errors import SmeltError
from smelt.frontends.jax import trace

SIZES = ({"N": 1, "M": 4}, {"N": 5, "M": 2}, {"N": 8, "M": 9})
QUERY = [-9.0, -0.0, 0.0, 1.5, 1.5, 3.0, 99.0, np.nan, np.inf]

SEARCHES = {
    "left": lambda x, q: jnp.searchsorted(jnp.sort(x), q),
    "right": lambda x, q: jnp.searchsorted(jnp.sort(x), q, side="right"),
    "other methods": lambda x, q: jnp.searchsorted(jnp.sort(x), q, method="compare_all"),
    "a number": lambda x, q: jnp.searchsorted(jnp.sort(x), q[0]),
    "integers": lambda x, q: jnp.searchsorted(jnp.sort(x).astype(int), jnp.arange(-4, 4)),
    "equal and NaN": lambda x, q: jnp.searchsorted(jnp.sort(jnp.round(x)), jnp.array(QUERY)),
    "not sorted": jnp.searchsorted,
    "mapped": lambda x, q: jax.vmap(lambda b: jnp.searchsorted(jnp.sort(x) + b, q))(q),
    "interp": lambda x, q: jnp.interp(q, jnp.sort(x), x),
    "digitize": lambda x, q: jnp.digitize(q, jnp.sort(x)),
    "histogram": lambda x, q: jnp.histogram(q, jnp.append(jnp.sort(x), 20.0))[0],
}


@pytest.mark.parametrize("name", SEARCHES)
def test_searches(check, name):
    check(SEARCHES[name], "f32[N]", "f32[M]", sizes=SIZES)


def test_searches_in_64_bits(check):
    check(SEARCHES["right"], "f64[N]", "f64[M]", sizes=SIZES, x64=True)


def test_diagonals(check):
    def fn(x):
        square = jnp.outer(x, x)
        return square.at[jnp.diag_indices(x.shape[0])].add(x), jnp.diag_indices(x.shape[0], 3)

    check(fn, "f32[N]", sizes=SIZES)
    check(lambda x: jnp.fill_diagonal(jnp.outer(x, x), 2.0, inplace=False), "f32[N]", sizes=SIZES)


def test_toeplitz(check):
    toeplitz = jax.scipy.linalg.toeplitz
    check(toeplitz, "f32[N]", sizes=SIZES)
    check(toeplitz, "f32[N]", "f32[M]", sizes=SIZES)
    check(toeplitz, "f32[2,N]", "f32[3]", sizes=SIZES)


@pytest.mark.parametrize("fn", [jnp.convolve, jnp.correlate])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions(check, fn, mode):
    kernel = jnp.array([1.0, -2.0, 0.5])
    sizes = [{"N": size} for size in (1, 2, 3, 4, 8)]
    for order, least in ((lambda x: fn(x, kernel, mode), 3), (lambda x: fn(kernel, x, mode), 4)):
        first = 1 if mode == "full" else least
        fit = [size for size in sizes if size["N"] >= first]
        check(order, "f32[N]", sizes=fit, constraints=(f"N >= {first}",))


@pytest.mark.parametrize("fn", [jnp.convolve, jnp.correlate])
@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_two_open_sizes(check, fn, mode):
    sizes = [{"N": n, "M": m} for n, m in ((1, 1), (5, 2), (5, 5), (6, 3))]
    longer = () if mode == "full" else ("N >= M",)
    either = [{"N": 2, "M": 5}] if mode == "full" else []
    check(partial(fn, mode=mode), "f32[N]", "f32[M]", sizes=sizes + either, constraints=longer)


def test_a_convolution_whose_longer_side_is_open_says_what_to_state():
    with pytest.raises(SmeltError, match="inconclusive") as caught:
        trace(lambda x: jnp.convolve(x, jnp.ones(3), "same"), "f32[N]", strict=True)
    assert "'N >= 3'" in caught.value.fix


@pytest.mark.parametrize(
    ("compared", "specs", "decided"),
    [
        (lambda n, m: n < 4, ("f32[N]", "f32[M]"), ("N <= 3", "N >= 4")),
        (lambda n, m: n > m, ("f32[N]", "f32[M]"), ("N >= M + 1", "N <= M")),
        (lambda n, m: n >= 2 * m, ("f32[N]", "f32[M]"), ("N >= 2*M", "N <= 2*M - 1")),
        (lambda n, m: n <= 1, ("f32[N]", "f32[M]"), ("N <= 1", "N >= 2")),
    ],
)
def test_a_comparison_that_is_open_names_both_ways_to_decide_it(compared, specs, decided):
    def fn(x, y):
        return x.sum() if compared(x.shape[0], y.shape[0]) else y.sum()

    with pytest.raises(SmeltError, match="inconclusive") as caught:
        trace(fn, *specs, strict=True)
    assert " or ".join(f"'{constraint}'" for constraint in decided) in caught.value.fix
    for constraint in decided:
        trace(fn, *specs, constraints=(constraint,))


def test_lengths_of_arrays(check):
    def fn(x):
        return x * len(x), jnp.zeros((len(x), 2)), jnp.arange(len(x[0])), [len(x[:, 0])] * len("ab")

    check(fn, "f32[N,M]", sizes=SIZES)


@pytest.mark.parametrize("fn", [lambda x: len(3), lambda x: len(x, x), lambda x: len(x[0, 0])])
def test_len_of_a_scalar_is_an_error_of_the_function(fn):
    with pytest.raises(SmeltError, match="your function raised TypeError") as caught:
        trace(fn, "f32[N,M]")
    assert "test_symbolic_sizes.py" in caught.value.at[0]


def test_windows(check):
    def fn(x):
        size = x.shape[0]
        return jnp.hanning(size) * x, jnp.blackman(size), jnp.kaiser(size, 2.0), jnp.hamming(size)

    check(fn, "f32[N]", constraints=("N >= 2",), sizes=[{"N": size} for size in (2, 5, 8)])


TRANSFORMS = {
    "real frequencies": lambda x: jnp.fft.rfftfreq(x.shape[0], 0.5),
    "even": lambda x: jnp.fft.rfftfreq(2 * x.shape[0], -2.0),
    "padded": lambda x: jnp.abs(jnp.fft.rfft(x, n=2 * x.shape[0] + 1)),
    "back to the size": lambda x: jnp.fft.irfft(jnp.fft.rfft(x), n=x.shape[0]),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_sizes_of_transforms(check, name):
    sizes = [{"N": size} for size in (1, 2, 5, 8)]
    check(TRANSFORMS[name], "f32[N]", sizes=sizes, rtol=1e-4, atol=1e-5)


def test_squeeze_without_axes_compares_open_sizes_with_1(check):
    with pytest.raises(SmeltError, match="inconclusive") as caught:
        trace(lambda x: x.squeeze(), "f32[1,N,1]")  # In one case, the result has no dims.
    assert "'N >= 2'" in caught.value.fix
    for spec in ("f32[1,N,1]", "f32[1,N,0]"):
        check(lambda x: x.squeeze(), spec, constraints=("N >= 2",), sizes=SIZES[1:])


def test_a_slice_of_open_size_that_does_not_fit_says_what_to_state(check):
    def fn(x):
        return x[:2] + jnp.arange(2.0)

    with pytest.raises(SmeltError, match="E113") as caught:
        trace(fn, "f32[N]", strict=True)
    assert "'N >= 2'" in caught.value.fix
    check(fn, "f32[N]", constraints=("N >= 2",), sizes=SIZES[1:])


def test_fitted_polynomials(check):
    check(lambda x, y: jnp.polyfit(x, y, 1), *["f32[N]"] * 2, sizes=[{"N": 4}, {"N": 7}], rtol=1e-3)
