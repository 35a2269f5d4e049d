"""Types that are only stored: every code is read exactly, and every number is rounded once."""

import numpy as np
import onnx_ir as ir
import pytest
from c_library import Library

from smelt.ir.tensors.packed import packed, unpacked

FLOATS = ["float16", "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"]
SMALL = ["float4e2m1", "int4", "uint4", "int2", "uint2"]
COUNT = 3001


def numpy_type(name: str) -> np.dtype:
    return np.dtype(ir.DataType[name.upper()].numpy())


def codes_of(name: str) -> np.ndarray:
    """Every element of the type; once more than whole bytes of them, where they are packed."""
    dtype = ir.DataType[name.upper()]
    bits = int(dtype.bitwidth)
    if bits == 16:
        return np.arange(2**16).astype(np.uint16).view(numpy_type(name))
    if bits == 8:
        return np.arange(2**8).astype(np.uint8).view(numpy_type(name))
    data = np.arange(64, dtype=np.uint8) * 37 + 5
    return unpacked(data, dtype, (64 * (8 // bits) - 1,))


def numbers() -> np.ndarray:
    """Of all magnitudes; ties between numbers of few bits, what overflows, no numbers."""
    rng = np.random.default_rng(0)
    wide = rng.standard_normal(2000) * 2.0 ** rng.integers(-30, 20, 2000)
    ties = (np.arange(200) + 0.5) * 2.0 ** rng.integers(-20, 10, 200)
    odd = [0.0, -0.0, np.inf, -np.inf, np.nan, 464, 465, 65519, 65520, 1e-45, 3e38, 61440, 248, 7]
    found = np.concatenate([wide, ties, -ties, odd, rng.standard_normal(COUNT)])
    return found[:COUNT].astype(np.float32)


def graphs() -> dict[str, str]:
    found = {}
    for name in FLOATS + SMALL:
        size = codes_of(name).size
        back = "to=1" if "float" in name else "to=3"
        into = "float" if "float" in name else "int8"
        found[f"load {name}"] = (
            f"g ({name}[{size}] x) => ({into}[{size}] y) {{ y = Cast<{back}>(x) }}"
        )
        to = int(ir.DataType[name.upper()])
        found[f"move {name}"] = (
            f"g ({name}[{size}] x) => ({name}[{size},2] y, {name}[{size}] z) {{ "
            "a = Constant<value_ints=[1]>() u = Unsqueeze(x, a) y = Concat<axis=1>(u, u) "
            "s = Constant<value_ints=[-1]>() z = Reshape(x, s) }"
        )
        for source in ("float", "double") if name in FLOATS else ():
            found[f"{source} to {name}"] = (
                f"g ({source}[{COUNT}] x) => ({name}[{COUNT}] y) "
                f"{{ y = Cast<to={to}, saturate=0>(x) }}"
            )
    for name in ("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"):
        to = int(ir.DataType[name.upper()])
        found[f"saturated {name}"] = (
            f"g (float[{COUNT}] x) => ({name}[{COUNT}] y) {{ y = Cast<to={to}>(x) }}"
        )
    for name in ("float16", "bfloat16"):
        found[f"network {name}"] = (
            f"g ({name}[2,3,6,6] x, {name}[4,3,3,3] w, {name}[4,5] m) => ({name}[2,5] y) {{ "
            "c = Conv(x, w) r = Relu(c) p = GlobalAveragePool(r) f = Flatten(p) "
            "d = MatMul(f, m) y = Softmax(d) }"
        )
    return found


@pytest.fixture(scope="module")
def library() -> Library:
    return Library(graphs())


def same(got: np.ndarray, want: np.ndarray) -> None:
    assert (got.dtype, got.shape) == (want.dtype, want.shape)
    with np.errstate(invalid="ignore"):
        got, want = got.astype(np.float64), want.astype(np.float64)
    np.testing.assert_array_equal(got, want)
    number = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got)[number], np.signbit(want)[number])


@pytest.mark.parametrize("name", FLOATS + SMALL)
def test_every_code_is_read(library: Library, name: str) -> None:
    codes = codes_of(name)
    into = np.float32 if "float" in name else np.int8
    (got,) = library.run(f"load {name}", [codes])
    same(got, codes.astype(into))


@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize("name", FLOATS)
def test_numbers_are_rounded_once(library: Library, name: str, source: type) -> None:
    x = numbers().astype(source)
    if source is np.float64:  # just above and below ties, which float32 would round first
        x[:1000] *= 1 + 2.0**-40
        x[1000:2000] *= 1 - 2.0**-40
    word = "float" if source is np.float32 else "double"
    (got,) = library.run(f"{word} to {name}", [x])
    if source is np.float32:
        with np.errstate(over="ignore"):
            same(got, x.astype(numpy_type(name)))
        return
    wide, finite = got.astype(np.float64), np.isfinite(got.astype(np.float64))
    with np.errstate(all="ignore"):
        nearest = x.astype(np.float32).astype(numpy_type(name)).astype(np.float64)
    assert (np.abs(wide[finite] - x[finite]) <= np.abs(nearest[finite] - x[finite])).all()


@pytest.mark.parametrize("name", ["float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"])
def test_saturation_gives_the_largest_number(library: Library, name: str) -> None:
    x = numbers()
    (got,) = library.run(f"saturated {name}", [x])
    codes = codes_of(name).astype(np.float32)
    top = codes[np.isfinite(codes)].max()
    clipped = np.where(np.isnan(x), x, np.clip(x, -top, top))
    same(got, clipped.astype(numpy_type(name)))


@pytest.mark.parametrize("name", FLOATS + SMALL)
def test_elements_are_moved(library: Library, name: str) -> None:
    codes = codes_of(name)
    pair, flat = library.run(f"move {name}", [codes])
    for got in (pair[:, 0], pair[:, 1], flat):
        same(got, codes)


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_kernels_compute_in_float(library: Library, name: str) -> None:
    rng = np.random.default_rng(1)
    shapes = [(2, 3, 6, 6), (4, 3, 3, 3), (4, 5)]
    given = [rng.standard_normal(shape).astype(numpy_type(name)) for shape in shapes]
    (got,) = library.run(f"network {name}", given)
    assert got.dtype == numpy_type(name)
    np.testing.assert_allclose(got.astype(np.float32).sum(axis=1), 1, rtol=2**-6)


@pytest.mark.parametrize("dtype", [ir.DataType[name.upper()] for name in SMALL])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 5, 8])
def test_packing_is_undone(dtype: ir.DataType, size: int) -> None:
    array = codes_of(dtype.name.lower())[:size]
    data = packed(array, dtype)
    assert data.nbytes == (size * int(dtype.bitwidth) + 7) // 8
    same(unpacked(data, dtype, (size,)), array)
