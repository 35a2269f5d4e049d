"""Axes that a node names twice, or beyond its rank, where ONNX Runtime takes them."""

from __future__ import annotations

import numpy as np
import pytest

import smelt
from smelt.errors import SmeltError
from smelt.ir import text
from smelt.ir.listed_axes import listed_axes, without_repeats
from smelt.runtime.onnxruntime import OnnxRuntime

X = "g (float[A,1,4] x) => (y)"
AXES = "a = Constant<value_ints=[{}]>() y = {}(x, a)"
ATTRIBUTE = "y = {}<axes=[{}]>(x)"
NORM = "MeanVarianceNormalization"
MODELS = {
    "a Squeeze": (AXES.format("1,1", "Squeeze"), 13),
    "a Squeeze, from both ends": (AXES.format("1,-2", "Squeeze"), 21),
    "a Squeeze before opset 13": (ATTRIBUTE.format("Squeeze", "-2,1"), 11),
    "a Squeeze of no axes named": ("a = Constant<value_ints: ints=[]>() y = Squeeze(x, a)", 13),
    "the same before opset 13": ("y = Squeeze<axes: ints=[]>(x)", 11),
    "a sum": (AXES.format("2,0,2", "ReduceSum"), 17),
    "a sum without its dims": (AXES.format("0,-3", "ReduceSum<keepdims=0>"), 17),
    "a mean by an attribute": (ATTRIBUTE.format("ReduceMean", "2,-1"), 13),
    "a mean by an input": (AXES.format("2,-1", "ReduceMean"), 18),
    "normalized over axes of images": (f"y = {NORM}(x)", 13),
    "normalized over one twice": (ATTRIBUTE.format(NORM, "0,-3"), 9),
    "normalized over one that is not there": (ATTRIBUTE.format(NORM, "0,7"), 13),
    "normalized by an early runtime": (f"y = {NORM}(x)", 7),
    "means of all by an early runtime": (f"y = {NORM}<across_channels=1>(x)", 8),
    "means alone by an early runtime": (f"y = {NORM}<normalize_variance=0>(x)", 7),
}


@pytest.mark.parametrize("target", ["host", "c", "onnx"])
@pytest.mark.parametrize("name", MODELS)
def test_results_are_those_of_onnx_runtime(name: str, target: str) -> None:
    source, opset = MODELS[name]
    model = text.parse(f"{X} {{ {source} }}", opset)
    wanted = OnnxRuntime(text.parse(f"{X} {{ {source} }}", opset))
    bounds = {"dims": {"A": (2, 5)}} if target == "c" else {}
    artifact = smelt.compile(model, target=target, **bounds)
    for rows in (2, 5):
        x = np.random.default_rng(rows).normal(3, 1, (rows, 1, 4)).astype(np.float32)
        (got,), (want,) = artifact(x), wanted(x)
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_the_model_that_is_written_names_them_once() -> None:
    model = smelt.optimize(text.parse(f"{X} {{ {AXES.format('2,0,2', 'ReduceSum')} }}", 17))
    assert listed_axes(next(iter(model.graph))) == [2, 0]


def test_axes_that_onnx_runtime_refuses_are_refused() -> None:
    model = text.parse(f"{X} {{ {AXES.format('1,1', 'Unsqueeze')} }}", 17)
    with pytest.raises(SmeltError, match="E317"):
        smelt.optimize(model)


def test_a_squeeze_of_more_than_one_row_is_refused() -> None:
    model = text.parse(
        "g (float[2,4] x) => (y) { a = Constant<value_ints=[0,0]>() y = Squeeze(x, a) }", 17
    )
    with pytest.raises(SmeltError, match="E317"):
        smelt.compile(model, target="c")


def test_order_is_kept() -> None:
    assert without_repeats([2, -1, 0, 2], 3) == [2, 0]
    assert without_repeats([2, -1, 0, 2], None) == [2, -1, 0]
    assert without_repeats([-1, 0, 2], 3) == [-1, 0]
    assert without_repeats([], 3) == []


@pytest.mark.parametrize("target", ["host", "c"])
@pytest.mark.parametrize("offset", [0, 1000])
def test_numbers_far_from_0_keep_their_variance(target: str, offset: int) -> None:
    model = text.parse(f"g (float[2,3,8,8] x) => (float[2,3,8,8] y) {{ y = {NORM}(x) }}", 13)
    x = np.random.default_rng(0).normal(offset, 1, (2, 3, 8, 8)).astype(np.float32)
    wide = x.astype(np.float64)
    centred = wide - wide.mean((0, 2, 3), keepdims=True)
    want = centred / np.sqrt((centred**2).mean((0, 2, 3), keepdims=True))
    (got,) = smelt.compile(model, target=target)(x)
    np.testing.assert_allclose(got, want, atol=1e-4)
