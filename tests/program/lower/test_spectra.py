"""DFT along any axis and of any length, against NumPy's transforms in double precision."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text

CASES = {
    "a line": ([360], 0),
    "a line in steps of one size": ([4096], 0),
    "a line in a batch of one": ([1, 150], 1),
    "columns": ([96, 7], 0),
    "columns of planes": ([100, 3, 5], 0),
    "rows": ([3, 130], 1),
    "between": ([2, 66, 3], 1),
    "a prime": ([67, 2], 0),
    "a prime and a factor": ([134, 2], 0),
    "of the length of one matrix": ([64, 2], 0),
    "one element": ([1, 3], 0),
}


def compiled(shape: list[int], axis: int, dtype: str, target: str, **attributes: int):
    parts = attributes.pop("parts", 2)
    listed = ", ".join(f"{name} = {value}" for name, value in attributes.items())
    sizes, rank = ",".join(map(str, [*shape, parts])), len(shape) + 1
    result = ",".join("ABCD"[:rank])
    call = f"DFT<{listed}>" if listed else "DFT"
    source = f"""g ({dtype}[{sizes}] x) => ({dtype}[{result}] y) <int64 a = {{{axis}}}>
        {{ y = {call}(x, , a) }}"""
    return smelt.compile(text.parse(source), target=target)


def as_complex(x: np.ndarray) -> np.ndarray:
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(complex)


def assert_close(got: np.ndarray, wanted: np.ndarray) -> None:
    tolerance = 1e-12 if got.dtype == np.float64 else 3e-6
    both = np.stack([wanted.real, wanted.imag][: got.shape[-1]], -1)
    assert got.shape == both.shape
    assert np.abs(got - both).max() <= tolerance * np.abs(both).max()


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("name", CASES)
def test_there_and_back(name: str, target: str) -> None:
    shape, axis = CASES[name]
    dtype = "double" if name == "columns" else "float"
    x = np.random.default_rng(0).standard_normal([*shape, 2])
    x = x if dtype == "double" else x.astype(np.float32)
    (there,) = compiled(shape, axis, dtype, target)(x)
    assert_close(there, np.fft.fft(as_complex(x.astype(np.float64)), axis=axis))
    (back,) = compiled(shape, axis, dtype, target, inverse=1)(there)
    assert_close(back, as_complex(x.astype(np.float64)))


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize(("shape", "axis"), [([90, 3], 0), ([91, 2], 0), ([3, 90], 1)], ids=str)
def test_of_real_numbers_half_is_kept(shape: list[int], axis: int, target: str) -> None:
    x = np.random.default_rng(0).standard_normal([*shape, 1]).astype(np.float32)
    (half,) = compiled(shape, axis, "float", target, onesided=1, parts=1)(x)
    assert_close(half, np.fft.rfft(x[..., 0].astype(np.float64), axis=axis))


def test_what_is_no_number_reaches_all_of_its_column_and_no_other() -> None:
    x = np.random.default_rng(0).standard_normal([96, 3, 2]).astype(np.float32)
    x[5, 1, 0] = np.nan
    (got,) = compiled([96, 3], 0, "float", "host")(x)
    assert np.isnan(got[:, 1]).all()
    assert np.isfinite(got[:, [0, 2]]).all()


@pytest.mark.parametrize("length", [66, 74, 81, 121, 289, 1024, 2018, 2310, 65536])
def test_of_any_factors(length: int) -> None:
    """Small ones and large primes, once and several times."""
    x = np.random.default_rng(0).standard_normal([length, 2]).astype(np.float32)
    (got,) = compiled([length], 0, "float", "host")(x)
    assert_close(got, np.fft.fft(as_complex(x.astype(np.float64))))


def test_a_large_prime_is_refused() -> None:
    with pytest.raises(SmeltError, match="prime factor 2053"):
        compiled([2 * 2053], 0, "float", "c")
