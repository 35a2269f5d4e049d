"""Discrete Fourier transforms in C against NumPy, and the plan by which they are computed."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from c_library import Library

from smelt.native.kernels.fourier.plan import (
    LARGEST,
    RADICES,
    convolution_length,
    factors,
    half_twiddles,
    halves,
    is_smooth,
    twiddles,
    waste,
)

SMOOTH = (1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 60, 61, 77, 256)
ROUGH = (67, 134, 251)
"""Lengths with a prime factor that a step does not take, which are computed as convolutions."""


def transform(shape: str, axis: int, more: str = "", type_: str = "float") -> str:
    return (
        f"g ({type_}[{shape}] x) => ({type_}[a,b,c,d] y) "
        f"{{ a = Constant<value_int={axis}>() y = DFT{more}(x, , a) }}"
    )


GRAPHS = {
    **{f"{n} complex": transform(f"3,{n},1,2", 1) for n in (*SMOOTH, *ROUGH)},
    **{f"{n} inverse": transform(f"1,{n},3,2", 1, "<inverse=1>") for n in (8, 45, 60, 67)},
    **{f"{n} real": transform(f"2,{n},1,1", 1, "<onesided=1>") for n in (7, 8, 60, 67)},
    **{f"{n} complex columns": transform(f"2,{n},21,2", 1) for n in (8, 67)},
    **{f"{n} inverse columns": transform(f"2,{n},21,2", 1, "<inverse=1>") for n in (9, 60)},
    **{f"{n} real columns": transform(f"2,{n},21,1", 1, "<onesided=1>") for n in (7, 8, 67)},
    **{f"{n} double": transform(f"2,1,{n},2", 2, "", "double") for n in (12, 67)},
}


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(GRAPHS)


@pytest.mark.parametrize("name", GRAPHS)
def test_agrees_with_numpy(library: Library, name: str) -> None:
    (value,) = library.models[name].source.graph.inputs
    assert value.shape is not None
    assert value.dtype is not None
    axis = 2 if name.endswith("double") else 1
    x = np.random.default_rng(0).normal(size=value.shape.numpy()).astype(value.dtype.numpy())
    numbers = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0]
    compute = {"inverse": np.fft.ifft, "real": np.fft.rfft}.get(name.split()[1], np.fft.fft)
    want = compute(numbers, axis=axis)
    (found,) = library.run(name, [x])
    scale = np.finfo(x.dtype).eps * np.sqrt(np.mean(np.abs(want) ** 2)) * 20
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], want, rtol=0, atol=scale)


def test_steps_are_the_factors_of_a_length() -> None:
    for length in (*range(1, 130), 1024, 5040):
        steps = factors(length)
        assert prod(steps) == length
        large = [step for step in steps if step not in RADICES]
        assert steps[: len(large)] == tuple(large)
        assert all(step % divisor for step in large for divisor in range(2, step))
        assert is_smooth(length) == all(step <= LARGEST for step in steps)


@pytest.mark.parametrize("lanes", [4, 8])
def test_a_convolution_has_room_for_a_length_and_splits_into_halves(lanes: int) -> None:
    for length in range(7, 200):
        room = convolution_length(length, lanes)
        assert 2 * length - 1 <= room < 4 * length
        first, second = halves(room, lanes) or (0, 0)
        assert first * second == room
        assert min(first, second) >= 4


def test_a_step_of_two_is_joined_with_one_of_eight() -> None:
    assert [factors(n) for n in (16, 32, 64)] == [(4, 4), (8, 4), (8, 8)]
    assert [waste(n, 4) for n in (1, 4, 6)] == [4, 1, 8 / 6]


@pytest.mark.parametrize("sign", [-1, 1])
def test_twiddle_factors(sign: int) -> None:
    found = half_twiddles(3, 4, sign)
    angles = sign * 2j * np.pi * np.outer(np.arange(3), np.arange(4)) / 12
    np.testing.assert_allclose(found[:, 0] + 1j * found[:, 1], np.exp(angles), atol=1e-15)
    first = twiddles(12, sign)[: 2 * (factors(12)[0] - 1) * (12 // factors(12)[0])]
    a = factors(12)[0]
    angles = sign * 2j * np.pi * np.outer(np.arange(12 // a), np.arange(1, a)) / 12
    pairs = first.reshape(12 // a, a - 1, 2)
    np.testing.assert_allclose(pairs[..., 0] + 1j * pairs[..., 1], np.exp(angles), atol=1e-15)
