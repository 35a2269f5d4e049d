"""Windows larger than the image are cut to it, where results stay equal; norms of whole images."""

from __future__ import annotations

import numpy as np
import pytest
from both_targets import by_runtime, on_host
from lowered import only

import smelt
from smelt.ir import text
from smelt.ir.shapes.inference import ShapeInference

CUT = {
    "a mean over all pixels": "AveragePool<kernel_shape=[1280,9], ceil_mode=1, strides=[1280,9]>",
    "pads counted, and none there": "AveragePool<kernel_shape=[4,3], count_include_pad=1>",
    "pads that are not counted": "AveragePool<kernel_shape=[6,7], pads=[1,2,1,2]>",
    "a maximum": "MaxPool<kernel_shape=[5,3], pads=[1,0,0,0], strides=[2,2]>",
    "a root of squares": "LpPool<kernel_shape=[6,5], pads=[1,1,1,1]>",
}

LEFT = {
    "pads that count": "AveragePool<kernel_shape=[6,5], pads=[1,1,1,1], count_include_pad=1>",
    "every second pixel": "MaxPool<kernel_shape=[2,2], dilations=[3,2]>",
    "a window short of the end": "MaxPool<kernel_shape=[4,3], pads=[1,0,0,0], strides=[4,4]>",
}


def _graph(pool: str) -> str:
    return f"g (float[2,3,4,3] x) => (y) {{ y = {pool}(x) }}"


@pytest.mark.parametrize("pool", CUT.values(), ids=CUT)
def test_a_window_that_covers_the_image_is_cut(pool: str) -> None:
    found = only(_graph(pool))
    assert found["kernel_shape"] == (4, 3)
    assert found["pads"] == (0, 0, 0, 0)


@pytest.mark.parametrize("pool", [*CUT.values(), *LEFT.values()], ids=[*CUT, *LEFT])
def test_results_stay(pool: str) -> None:
    model = text.parse(_graph(pool), opset=22)
    ShapeInference(model).infer_model()
    x = np.random.default_rng(0).normal(size=(2, 3, 4, 3)).astype(np.float32)
    x[0, 0, 1, 1], x[1, 2, 3, 2] = np.nan, -np.inf
    expected = by_runtime(model, [x])
    if "MaxPool" in pool:  # ONNX Runtime drops a NaN, or not
        x[0, 0, 1, 1] = 0
        expected = by_runtime(model, [x])
    np.testing.assert_allclose(on_host(model, [x])[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize("pool", LEFT.values(), ids=LEFT)
def test_other_windows_stay(pool: str) -> None:
    kernel = tuple(map(int, pool.split("kernel_shape=[")[1].split("]", maxsplit=1)[0].split(",")))
    assert only(_graph(pool))["kernel_shape"] == kernel


@pytest.mark.parametrize("p", [1, 2, 3])
def test_a_global_norm_is_computed_for_each_channel(p: int) -> None:
    x = np.random.default_rng(p).standard_normal((2, 3, 5, 7)).astype(np.float32)
    run = smelt.compile(
        text.parse(f"g (float[2,3,5,7] x) => (y) {{ y = GlobalLpPool<p={p}>(x) }}"), target="host"
    )
    expected = (np.abs(x) ** p).sum((2, 3), keepdims=True) ** (1 / p)
    np.testing.assert_allclose(run(x)[0], expected, rtol=1e-5)
