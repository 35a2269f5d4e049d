"""DFT along any axis and of any length, against NumPy's transforms in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from sampling import sampled

import smelt
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


def there_and_back(x: np.ndarray, axis: int, target: str) -> list[np.ndarray]:
    """Return the transform of ``x``, and the inverse transform of that, by one program."""
    dtype, sizes = "double" if x.dtype == np.float64 else "float", ",".join(map(str, x.shape))
    result = ",".join("ABCD"[: x.ndim])
    source = f"""g ({dtype}[{sizes}] x) => ({dtype}[{result}] y, {dtype}[{result}] z)
        <int64 a = {{{axis}}}> {{ y = DFT(x, , a) z = DFT<inverse = 1>(x, , a) }}"""
    return smelt.compile(text.parse(source), target=target)(x)


def as_complex(x: np.ndarray) -> np.ndarray:
    return x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(complex)


def assert_close(got: np.ndarray, wanted: np.ndarray) -> None:
    tolerance = 1e-12 if got.dtype == np.float64 else 3e-6
    both = np.stack([wanted.real, wanted.imag][: got.shape[-1]], -1)
    assert got.shape == both.shape
    assert np.abs(got - both).max() <= tolerance * np.abs(both).max()


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_there_and_back(name: str, target: str) -> None:
    shape, axis = CASES[name]
    dtype = "double" if name == "columns" else "float"
    x = np.random.default_rng(0).standard_normal([*shape, 2])
    x = x if dtype == "double" else x.astype(np.float32)
    there, back = there_and_back(x, axis, target)
    z = as_complex(x.astype(np.float64))
    assert_close(there, np.fft.fft(z, axis=axis))
    assert_close(back, np.fft.ifft(z, axis=axis))


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize(("shape", "axis"), [([90, 3], 0), ([91, 2], 0), ([3, 90], 1)], ids=str)
def test_a_onesided_transform_keeps_half_of_the_spectrum(
    shape: list[int], axis: int, target: str
) -> None:
    x = np.random.default_rng(0).standard_normal([*shape, 1]).astype(np.float32)
    (half,) = compiled(shape, axis, "float", target, onesided=1, parts=1)(x)
    assert_close(half, np.fft.rfft(x[..., 0].astype(np.float64), axis=axis))


def test_a_nan_reaches_all_of_its_column_and_no_other() -> None:
    x = np.random.default_rng(0).standard_normal([96, 3, 2]).astype(np.float32)
    x[5, 1, 0] = np.nan
    (got,) = compiled([96, 3], 0, "float", "host")(x)
    assert np.isnan(got[:, 1]).any(axis=-1).all()
    assert np.isfinite(got[:, [0, 2]]).all()


def bound(dtype: np.dtype, length: int) -> float:
    """Return the promised error of the kernel, relative to the largest result."""
    return float(np.finfo(dtype).eps) * (1 + np.log2(length)) * 2


@pytest.mark.parametrize("length", [2, 11, 61, 66, 74, 81, 121, 289, 1024, 2018, 2310, 65536])
def test_lengths_with_any_prime_factors(length: int) -> None:
    """Small and large primes, once and several times."""
    for dtype in ("float", "double"):
        x = np.random.default_rng(0).standard_normal([length, 2])
        x = x.astype(np.float32 if dtype == "float" else np.float64)
        (got,) = compiled([length], 0, dtype, "host")(x)
        wanted = np.fft.fft(as_complex(x.astype(np.float64)))
        found = got[:, 0] + 1j * got[:, 1]
        assert np.abs(found - wanted).max() <= bound(x.dtype, length) * np.abs(wanted).max()


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [([2053], 0), ([2 * 2053, 2], 0), ([20, 67], 1), ([3, 71, 2], 1), ([2, 67, 9], 1)],
    ids=str,
)
def test_a_prime_length_in_all_layouts(shape: list[int], axis: int, target: str) -> None:
    """One row, columns, rows that fill vectors, a few rows with a large stride, and lane-batched
    rows.
    """
    x = np.random.default_rng(0).standard_normal([*shape, 2]).astype(np.float32)
    z = as_complex(x.astype(np.float64))
    there, back = there_and_back(x, axis, target)
    assert_close(there, np.fft.fft(z, axis=axis))
    assert_close(back, np.fft.ifft(z, axis=axis))


LENGTHS = {"as it is": 0, "cut": -3, "filled": 2}


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("change", sampled(LENGTHS, 2))
@pytest.mark.parametrize(
    ("shape", "axis"), [([24], 0), ([25], 0), ([18, 72], 1), ([2, 9, 3], 1), ([30, 8], 0)], ids=str
)
def test_cut_and_padded_lengths(shape: list[int], axis: int, change: str, target: str) -> None:
    """Real numbers to half of their spectrum and back, even and odd lengths, cut or padded with
    zeros.
    """
    x = np.random.default_rng(0).standard_normal([*shape, 1])
    length = shape[axis] + LENGTHS[change]
    whole = 2 * shape[axis] - 2 + LENGTHS[change]
    pair = np.random.default_rng(1).standard_normal([*shape, 2])
    sizes, result = ",".join(map(str, shape)), ",".join("ABCD"[: x.ndim])
    source = f"""g (double[{sizes},1] x, double[{sizes},2] z)
        => (double[{result}] half, double[{result}] back, double[{result}] full)
        <int64 n = {{{length}}}, int64 m = {{{whole}}}, int64 a = {{{axis}}}> {{
        half = DFT<onesided = 1>(x, n, a)
        back = DFT<onesided = 1, inverse = 1>(z, m, a)
        full = DFT(x, n, a) }}"""
    half, back, full = smelt.compile(text.parse(source), target=target)(x, pair)
    assert_close(half, np.fft.rfft(x[..., 0], length, axis))
    assert_close(back, np.fft.irfft(as_complex(pair), whole, axis).astype(complex))
    assert_close(full, np.fft.fft(x[..., 0], length, axis))


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_nan_in_one_row_does_not_reach_other_rows(engine: str) -> None:
    """Two rows of real numbers are transformed as one row of complex ones, and prime lengths by a
    convolution; neither may mix rows.
    """
    x = np.random.default_rng(0).standard_normal([20, 134, 1]).astype(np.float32)
    x[3, 7] = np.inf
    source = """g (float[20,134,1] x) => (float[20,68,2] y) <int64 a = {1}>
        { y = DFT<onesided = 1>(x, , a) }"""
    (got,) = smelt.compile(text.parse(source), target="host", engine=engine)(x)
    assert (~np.isfinite(got[3])).any(axis=-1).all()
    assert np.isfinite(np.delete(got, 3, 0)).all()


@pytest.mark.parametrize("engine", ["numpy", "native"])
def test_empty_batches(engine: str) -> None:
    source = "g (float[N,8,2] x) => (float[N,8,2] y) <int64 a = {1}> { y = DFT(x, , a) }"
    artifact = smelt.compile(text.parse(source), target="host", engine=engine)
    for rows in (0, 1, 17):
        x = np.random.default_rng(0).standard_normal([rows, 8, 2]).astype(np.float32)
        (got,) = artifact(x)
        assert got.shape == (rows, 8, 2)
        if rows:
            assert_close(got, np.fft.fft(as_complex(x.astype(np.float64)), axis=1))


@pytest.mark.parametrize("bounds", [(0, 40), (20, 40)], ids=str)
def test_columns_of_an_open_number(bounds: tuple[int, int]) -> None:
    """The bounds of the open size decide whether columns fill vectors."""
    source = "g (float[2,9,N,2] x) => (float[2,9,N,2] y) <int64 a = {1}> { y = DFT(x, , a) }"
    artifact = smelt.compile(text.parse(source), target="c", dims={"N": bounds})
    for columns in (bounds[0], 23, 40):
        x = np.random.default_rng(0).standard_normal([2, 9, columns, 2]).astype(np.float32)
        (got,) = artifact(x)
        assert got.shape == x.shape
        if columns:
            assert_close(got, np.fft.fft(as_complex(x.astype(np.float64)), axis=1))
