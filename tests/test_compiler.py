"""What the compiler adds to the frontends: layouts of images, and options of tracing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest

import smelt
from smelt.errors import UsageError
from smelt.runtime.runner import run

KERNEL = np.linspace(-1, 1, 3 * 3 * 3 * 5, dtype=np.float32).reshape(3, 3, 3, 5)


def convolution(image, scale):
    dims = ("NHWC", "HWIO", "NHWC")
    y = jax.lax.conv_general_dilated(image, KERNEL, (1, 1), "SAME", dimension_numbers=dims)
    return {"image": y * scale, "mean": y.mean((1, 2)), "size": image.shape[1] * jnp.ones(())}


def shapes(model):
    return {v.name: str(v.shape) for v in (*model.graph.inputs, *model.graph.outputs)}


@pytest.mark.parametrize("optimized", [False, True])
def test_images_with_channels_first(optimized):
    names = ("image", "out_image")
    model = smelt.trace(convolution, "f32[B,H,8,3]", "f32[]", channels_first=names)
    assert shapes(model) == {
        "image": "[B,3,H,8]",
        "scale": "[]",
        "out_image": "[B,5,H,8]",
        "out_mean": "[B,5]",
        "out_size": "[]",
    }
    if optimized:
        model = smelt.optimize(model)
        (conv,) = (node for node in model.graph if node.op_type == "Conv")
        assert conv.inputs[0] is model.graph.inputs[0]
    image = np.random.default_rng(0).standard_normal((2, 6, 8, 3), np.float32)
    expected = convolution(image, 3.0)
    result, mean, size = run(model, [image.transpose(0, 3, 1, 2), np.float32(3)])
    np.testing.assert_allclose(result, expected["image"].transpose(0, 3, 1, 2), 1e-4, 1e-5)
    np.testing.assert_allclose(mean, expected["mean"], 1e-4, 1e-5)
    assert size == 6


def test_an_image_that_goes_straight_through():
    model = smelt.trace(lambda x: (x, x[0]), "f32[2,4,5,3]", channels_first=["x", "out_0"])
    assert shapes(model) == {"x": "[2,3,4,5]", "out_0": "[2,3,4,5]", "out_1": "[4,5,3]"}


def test_new_names_are_meant():
    given = {"input_names": ["picture"], "output_names": ["result"]}
    model = smelt.trace(lambda x: x + 1, "f32[B,7,3]", channels_first="result", **given)
    assert shapes(model) == {"picture": "[B,7,3]", "result": "[B,3,7]"}


@pytest.mark.parametrize(("names", "code"), [("y", "E108"), (["x", "x"], "E108"), ("v", "E603")])
def test_wrong_names_are_refused(names, code):
    with pytest.raises(UsageError) as caught:
        smelt.trace(lambda x, v: x + v, "f32[B,7,3]", "f32[3]", channels_first=names)
    assert caught.value.code == code


def test_options_of_tracing_reach_the_trace():
    tracing = {"static": {"n": 3}, "kwargs": {"y": "f32[B]"}, "output_names": ["sum"]}
    artifact = smelt.compile(lambda x, *, y, n: x * n + y, "f32[B]", tracing=tracing)
    assert [value.name for value in artifact.model.graph.inputs] == ["x", "y"]
    assert [value.name for value in artifact.model.graph.outputs] == ["sum"]


def test_options_of_tracing_belong_to_functions():
    model = smelt.trace(lambda x: x + 1, "f32[B]")
    with pytest.raises(UsageError) as caught:
        smelt.compile(model, tracing={"static": {}})
    assert caught.value.code == "E608"


@pytest.mark.parametrize("target", ["onnx", "host", "c"])
def test_a_model_of_another_domain_alone_gets_operators_of_onnx(target):
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["com.microsoft": 1]>
        g (uint8[4] a, float s, uint8 z) => (uint8[4] c)
        { c = com.microsoft.QLinearAdd(a, s, z, a, s, z, s, z) }"""
    )
    a, scale, zero = np.array([0, 3, 90, 255], np.uint8), np.float32(0.5), np.uint8(3)
    (c,) = smelt.compile(model, target=target)(a, np.asarray(scale), np.asarray(zero))
    assert c.tolist() == [0, 3, 177, 255]
