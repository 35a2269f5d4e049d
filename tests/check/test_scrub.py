"""Reproducers hold random weights of the same shape, type and scale."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx_ir as ir
import pytest

from smelt.check.scrub import scrub
from smelt.ir import text


def model_with(array: np.ndarray) -> ir.Model:
    model = text.parse("g (float[2] x) => (float[2] y) { y = Identity(x) }")
    value = ir.Value(name="w", const_value=ir.tensor(array, name="w"))
    model.graph.register_initializer(value)
    return model


def scrubbed(array: np.ndarray, seed: int = 0) -> np.ndarray:
    model = model_with(array)
    scrub(model, seed)
    tensor = model.graph.initializers["w"].const_value
    assert tensor is not None
    return tensor.numpy()


RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    "dtype",
    [np.float32, np.float64, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int32],
)
def test_weights_become_random_ones_of_the_same_scale(dtype):
    array = (3 + 40 * RNG.uniform(0, 1, (20, 30))).astype(dtype)
    result = scrubbed(array)
    assert (result.dtype, result.shape) == (array.dtype, array.shape)
    before, after = array.astype(np.float64), result.astype(np.float64)
    assert np.mean(before == after) < 0.2
    assert abs(after.mean() - before.mean()) < 0.2 * before.std()
    assert before.min() <= after.min()
    assert after.max() <= before.max()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(100),
        np.ones(16, np.float32),
        np.zeros(100, np.float32),
        np.full(100, np.nan, np.float32),
        np.array([True, False] * 20),
        np.zeros((0, 100), np.float32),
    ],
)
def test_integers_booleans_and_constant_arrays_stay(array):
    np.testing.assert_array_equal(scrubbed(array), array)


def test_zeros_and_what_is_not_finite_stay_where_they_are():
    array = RNG.normal(size=100).astype(np.float32)
    array[:3] = 0, np.inf, np.nan
    np.testing.assert_array_equal(scrubbed(array)[:3], array[:3])


def test_equal_seeds_give_equal_weights():
    array = RNG.normal(size=100).astype(np.float32)
    np.testing.assert_array_equal(scrubbed(array, 1), scrubbed(array, 1))
    assert (scrubbed(array, 1) != scrubbed(array, 2)).any()


def test_constants_and_lists_of_numbers_in_nodes_are_weights_too():
    numbers = ",".join(str(float(i)) for i in range(1, 41))
    model = text.parse(
        f"g (float[40] x) => (float[40] y) {{ c = Constant<value_floats=[{numbers}]>() y = Add(x, c) }}"
    )
    scrub(model)
    (constant,) = [node for node in model.graph if node.op_type == "Constant"]
    assert list(constant.attributes["value_floats"].as_floats()) != list(range(1, 41))


def test_texts_are_replaced():
    tensor = ir.StringTensor([b"secret"] * 20, shape=ir.Shape([20]), name="w")
    model = model_with(np.zeros(2))
    model.graph.initializers["w"].const_value = tensor
    scrub(model)
    (kept,) = model.graph.initializers.values()
    assert b"secret" not in list(kept.const_value.string_data())
