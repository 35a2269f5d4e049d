"""Each schedule of the tables computes what the empty schedule does, on an interpreter of nests."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from drawn_pools import context, image, random_window, tables
from sampling import sampled

from smelt.loops.interpreter import numpy_type, run
from smelt.loops.lower import lower
from smelt.native.kernels.kernel import KernelContext
from smelt.native.kernels.pool import variants
from smelt.program.run_sizes import Size

FLOATS = (ir.DataType.FLOAT, ir.DataType.DOUBLE)
INTEGERS = (ir.DataType.INT8, ir.DataType.UINT8, ir.DataType.INT32, ir.DataType.INT64)


def computed(cx: KernelContext, x: np.ndarray, sizes: dict[str, int], count: int) -> list:
    """The results of the empty schedule, and of each variant of the kernel at two widths."""
    results = []
    nests = [lower(variants(cx)[-1][0])]
    for algorithm, schedule in variants(cx):
        nests += [lower(algorithm, schedule)] * 2
    for lanes, nest in zip((8, *(8, 16) * 2), nests, strict=False):
        y = np.full(count, 99, x.dtype)
        places = np.full(count, -9, np.int64)
        arrays = {"x0": x, "y0": y, "y1": places, **tables(cx)}
        run(nest, arrays, sizes, lanes)
        results.append((y, places))
    return results


def assert_alike(results: list, exact: bool) -> None:
    (expected, places), *others = results
    for y, other_places in others:
        np.testing.assert_array_equal(places, other_places)
        if exact:
            np.testing.assert_array_equal(y, expected)
            np.testing.assert_array_equal(np.signbit(y), np.signbit(expected))
        else:
            np.testing.assert_allclose(y, expected, rtol=2e-5, atol=1e-5)


def sides(rng: np.random.Generator, window: dict[str, tuple[int, ...]]) -> list[int]:
    """Sides of an image that a window fits into, one of which is long enough for vectors."""
    rank = len(window["kernel_shape"])
    reach = [
        (k - 1) * d + 1 for k, d in zip(window["kernel_shape"], window["dilations"], strict=True)
    ]
    most = [9 // rank] * (rank - 1) + [40 if rng.random() < 0.6 else 9]
    return [int(rng.integers(low, low + m)) for low, m in zip(reach, most, strict=True)]


@pytest.mark.parametrize("seed", sampled(range(24), 2))
def test_maxima(seed: int) -> None:
    rng = np.random.default_rng(seed)
    window = random_window(rng, 1 + seed % 3)
    dtype = (FLOATS + INTEGERS)[seed // 3 % 6] if seed % 2 else ir.DataType.FLOAT
    shape = (2, int(rng.integers(1, 3)), *sides(rng, window))
    cx = context("MaxPool", shape, window, dtype)
    x = image(rng, int(np.prod(shape)), numpy_type(cx.type(0)))
    assert_alike(computed(cx, x, {}, int(np.prod(cx.output_shape()))), exact=True)


@pytest.mark.parametrize("seed", sampled(range(24), 2))
def test_means(seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    window = random_window(rng, 1 + seed % 3)
    shape = (1, int(rng.integers(1, 4)), *sides(rng, window))
    cx = context("AveragePool", shape, window, count_include_pad=seed // 3 % 2)
    x = image(rng, int(np.prod(shape)), np.dtype("float32"))
    assert_alike(computed(cx, x, {}, int(np.prod(cx.output_shape()))), exact=False)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize("seed", sampled(range(12), 2))
def test_run_time_sizes(op: str, seed: int) -> None:
    rng = np.random.default_rng(200 + seed)
    window = random_window(rng, 2)
    height, width = sides(rng, window)
    names = [Size.named(f"dim{i}", 1, 64) for i in range(3)]
    if seed % 3 == 2:
        names[1:] = height, width
    cx = context(op, (names[0], 2, *names[1:]), window, count_include_pad=seed % 2)
    sizes = {"dim0": int(rng.integers(1, 3)), "dim1": height, "dim2": width}
    x = image(rng, sizes["dim0"] * 2 * height * width, np.dtype("float32"))
    fixed = context(op, (sizes["dim0"], 2, height, width), window, count_include_pad=seed % 2)
    count = int(np.prod(fixed.output_shape()))
    results = computed(cx, x, sizes, count)
    results.append(computed(fixed, x, {}, count)[0])
    assert_alike(results, exact=op == "MaxPool")


@pytest.mark.parametrize("width", [0, 1])
def test_no_and_one_element(width: int) -> None:
    """A run may have no images, and an image may be smaller than a vector."""
    window = {"kernel_shape": (3, 3), "strides": (1, 1), "dilations": (1, 1), "pads": (1, 1, 1, 1)}
    cx = context("MaxPool", (Size.named("dim0", 0, 4), 1, 3, Size.named("dim1", 0, 9)), window)
    for batch in (0, 2):
        x = np.arange(batch * 3 * width, dtype=np.float32)
        assert_alike(computed(cx, x, {"dim0": batch, "dim1": width}, x.size), exact=True)


@pytest.mark.parametrize("seed", range(8))
def test_places_of_the_first_largest_element(seed: int) -> None:
    rng = np.random.default_rng(300 + seed)
    window = random_window(rng, 2)
    shape = (1, 2, *sides(rng, window))
    cx = context("MaxPool", shape, window, places=True, storage_order=seed % 2)
    x = np.round(image(rng, int(np.prod(shape)), np.dtype("float32")))
    y, places = computed(cx, x, {}, int(np.prod(cx.output_shape())))[0]
    planes = x.reshape(shape)
    if seed % 2:
        planes = planes.swapaxes(2, 3)
    np.testing.assert_array_equal(planes.reshape(-1)[places], y)


def test_a_nan_is_found_wherever_it_is() -> None:
    """A maximum by vectors computes a plane again after it met a NaN, and no other plane."""
    window = {"kernel_shape": (3, 3), "strides": (2, 2), "dilations": (1, 1), "pads": (1, 1, 1, 1)}
    cx = context("MaxPool", (1, 3, 5, 20), window)
    algorithm, schedule = variants(cx)[0]
    for place in range(0, 300, 23):
        x = np.linspace(-1, 1, 300, dtype=np.float32)
        x[place] = np.nan
        y, expected = np.zeros(90, np.float32), np.zeros(90, np.float32)
        run(lower(algorithm), {"x0": x, "y0": expected})
        run(lower(algorithm, schedule), {"x0": x, "y0": y}, lanes=16)
        assert np.isnan(expected).any()
        np.testing.assert_array_equal(y, expected)
