"""Vectorized convolutions and pools over images of open sizes."""

from __future__ import annotations

import numpy as np
import pytest
from c_library import STRICT
from sized_library import Sized, SizedLibrary, weights

from smelt.native.kernels.convolution import depthwise, plain, runtime_sized
from smelt.native.kernels.convolution.window import window_of
from smelt.native.kernels.instance import Instance
from smelt.runtime.onnxruntime import OnnxRuntime

OPEN = {"H": (1, 40), "W": (1, 40)}


def conv(
    kernel: str,
    attributes: str,
    channels: int = 5,
    filters: int = 7,
    group: int = 1,
    least: int = 1,
) -> Sized:
    shape = (filters, channels // group, *map(int, kernel.split(",")))
    rank = len(shape) - 2
    dims, results = ",".join("HW"[-rank:]), ",".join("PQ"[-rank:])
    return Sized(
        f"g (float[2,{channels},{dims}] x, float[{','.join(map(str, shape))}] w, "
        f"float[{filters}] b) => (float[2,{filters},{results}] y) "
        f"{{ y = Conv<group={group} {attributes}>(x, w, b) }}",
        {name: (least, most) for name, (_, most) in OPEN.items() if name in dims},
        weights(w=shape, b=(filters,)),
    )


def pool(op: str, attributes: str, least: int = 1) -> Sized:
    graph = f"g (float[2,3,H,W] x) => (float[2,3,P,Q] y) {{ y = {op}<{attributes}>(x) }}"
    return Sized(graph, {name: (least, most) for name, (_, most) in OPEN.items()})


DIRECT = {
    "3x3": conv("3,3", ", pads=[1,1,1,1]"),
    "3x3 of many filters": conv("3,3", ", pads=[1,1,1,1]", filters=53),
    "3x3 without padding": conv("3,3", "", least=3),
    "3x3 by two": conv("3,3", ", pads=[0,1,1,0], strides=[2,2]", filters=33, least=2),
    "3x3 of groups": conv("3,3", ", pads=[1,1,1,1]", 8, 16, 4),
    "dilated": conv("3,2", ", pads=[2,3,2,0], dilations=[2,3]", least=2),
    "wide": conv("1,11", ", pads=[0,5,0,5], strides=[1,3]"),
    "padding wider than the image": conv("7,7", ", pads=[6,6,6,6], strides=[3,2]"),
    "pointwise": conv("1,1", "", filters=35),
    "pointwise by two": conv("1,1", ", strides=[2,2]"),
    "padding below alone": conv("3,1", ", pads=[0,0,2,0]"),
    "padding above and below, by three": conv("5,1", ", pads=[2,0,2,0], strides=[3,1]"),
    "padding below and left": conv("3,3", ", pads=[0,2,2,0]"),
    "of a row": conv("5", ", pads=[2,2]", filters=20),
    "no image at all": conv("3,3", ", pads=[1,1,1,1]", least=0),
}
DEPTHWISE = {
    "by channel": conv("3,3", ", pads=[1,1,1,1]", 5, 5, 5),
    "by channel, by two": conv("3,3", ", pads=[0,0,1,1], strides=[2,2]", 5, 10, 5, 2),
    "by channel, by three": conv("5,4", ", pads=[2,2,2,2], strides=[1,3]", 5, 5, 5, 2),
    "by channel, tall": conv("7,7", ", pads=[3,3,3,3]", 5, 5, 5),
    "by channel, dilated": conv("3,3", ", pads=[2,2,2,2], dilations=[2,2]", 5, 5, 5),
    "by channel, padding below alone": conv("3,1", ", pads=[0,0,2,0]", 5, 5, 5),
    "by channel, no image": conv("3,3", ", pads=[1,1,1,1]", 5, 5, 5, 0),
}
POOLS = {
    "largest": pool("MaxPool", "kernel_shape=[3,3], pads=[1,1,1,1], strides=[2,2]"),
    "largest of neighbours": pool("MaxPool", "kernel_shape=[5,5], pads=[2,2,2,2]"),
    "largest of three": pool("MaxPool", "kernel_shape=[2,2], strides=[3,3]", 2),
    "mean": pool("AveragePool", "kernel_shape=[2,2], strides=[2,2]", 2),
    "mean of what is inside": pool("AveragePool", "kernel_shape=[3,3], pads=[1,1,1,1]"),
    "mean with padding": pool(
        "AveragePool",
        "kernel_shape=[3,3], pads=[1,0,1,2], strides=[2,1], count_include_pad=1",
        2,
    ),
}
MODELS = DIRECT | DEPTHWISE | POOLS


@pytest.mark.parametrize(("models", "way"), [(DIRECT, runtime_sized), (DEPTHWISE, depthwise)])
def test_each_is_computed_as_it_says(models: dict[str, Sized], way: object) -> None:
    for sized in models.values():
        program = sized.compile().plan.steps
        (step,) = program.instructions
        instance = Instance(program, step)
        assert next(w for w in (depthwise, runtime_sized, plain)
                    if w is plain or w.supports(instance, window_of(instance))) is way  # fmt: skip


@pytest.fixture(scope="module", params=[STRICT, (*STRICT, "-march=native")], ids=["few", "native"])
def library(request: pytest.FixtureRequest) -> SizedLibrary:
    return SizedLibrary(MODELS, flags=request.param)


@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnx_runtime(library: SizedLibrary, name: str) -> None:
    least = next(iter(MODELS[name].bounds.values()))[0]
    for h, w in ((1, 1), (7, 7), (3, 40), (40, 3), (8, 16), (17, 33), (40, 40)):
        library.check(name, {"H": max(h, least), "W": max(w, least)})


@pytest.mark.parametrize("name", ["no image at all", "by channel, no image"])
def test_nothing_comes_of_no_image(library: SizedLibrary, name: str) -> None:
    for h, w in ((0, 0), (0, 9), (9, 0)):
        (got,) = library.run(name, np.zeros((2, 5, h, w), np.float32))
        assert got.shape[2:] == (h, w)


@pytest.mark.parametrize("name", ["3x3", "by channel", "mean of what is inside"])
def test_odd_numbers_stay_where_they_are(library: SizedLibrary, name: str) -> None:
    x = library.inputs(name, {"H": 20, "W": 21})[0]
    x[0, 1, 3, 4], x[1, 2, 19, 20], x[0, 0, 10, 10] = np.nan, np.inf, -0.0
    (got,) = library.run(name, x)
    (want,) = OnnxRuntime(MODELS[name].model)(x)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_a_nan_is_the_largest(library: SizedLibrary) -> None:
    """ONNX Runtime loses some NaN, so NumPy gives the expected result."""
    x = library.inputs("largest", {"H": 20, "W": 21})[0]
    x[0, 1, 3, 4], x[1, 2, 19, 20] = np.nan, np.nan
    (got,) = library.run("largest", x)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::2, ::2]
    np.testing.assert_array_equal(got, windows.max((-2, -1)))
