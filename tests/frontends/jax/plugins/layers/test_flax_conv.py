"""flax nnx convolutions with bias become one operator, or JAX traces them as usual."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from smelt.compiler import optimize
from smelt.frontends.jax import trace


def operators(model):
    return Counter(node.op_type for node in model.graph)


def drawn(inputs, outputs, kernel, **options):
    """The layer with a bias that is not zero."""
    layer = nnx.Conv(inputs, outputs, kernel, rngs=nnx.Rngs(0), **options)
    if layer.bias is not None:
        layer.bias[...] = jnp.asarray(np.linspace(-1, 1, outputs), layer.bias[...].dtype)
    return layer


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_bias": False},
        {"padding": 1, "strides": 2},
        {"padding": [(0, 2), (3, 1)], "kernel_dilation": (1, 2)},
        {"padding": "VALID", "strides": (2, 3)},
        {"padding": (1, 0), "strides": None},
        {"feature_group_count": 2},
        {"dtype": jnp.float32},
    ],
)
def test_a_convolution_is_one_operator(check, options):
    layer = drawn(4, 6, (3, 2), **options)
    found = operators(check(layer, "f32[B,7,8,4]"))
    assert found["Conv"] == 1
    assert set(found) == {"Conv", "Transpose"}
    assert operators(optimize(trace(layer, "f32[B,7,8,4]")))["Conv"] == 1


@pytest.mark.parametrize("kernel", [(2,), (2, 1, 3)])
def test_images_of_other_ranks(check, kernel):
    image = ",".join(["4"] * len(kernel))
    assert operators(check(drawn(2, 3, kernel), f"f32[B,{image},2]"))["Add"] == 0


@pytest.mark.parametrize(
    "options",
    [
        {"padding": "CIRCULAR"},
        {"padding": "REFLECT"},
        {"padding": "CAUSAL"},
        {"input_dilation": 2, "padding": 1},
        {"mask": jnp.asarray(np.tri(3, 2)[:, :, None] * np.ones(3))},
        {"dtype": jnp.float16},
        {"preferred_element_type": jnp.float32},
    ],
)
def test_unusual_convolutions_are_right(check, options):
    check(drawn(2, 3, (3,), **options), "f32[B,6,2]", rtol=1e-2, atol=1e-2)


def test_convolutions_of_its_users(check):
    def doubled(x, *arguments, **keywords):
        return jax.lax.conv_general_dilated(x * 2, *arguments, **keywords)

    check(drawn(2, 3, (3,), conv_general_dilated=doubled), "f32[B,6,2]")


def test_batches_of_no_and_of_several_dims_and_images_of_open_size(check):
    layer = drawn(2, 3, (3, 2))
    check(layer, "f32[5,4,2]")
    check(layer, "f32[B,2,5,4,2]")
    check(layer, "f32[B,S,T,2]")
    check(layer, "f32[0,5,4,2]", inputs=[[np.ones((0, 5, 4, 2))]])


def test_maps_and_derivatives_are_those_of_the_layer(check):
    layer = drawn(2, 3, (3,))
    check(jax.vmap(layer, 1, 2), "f32[3,B,5,2]")
    check(jax.grad(lambda x: (layer(x) ** 2).sum()), "f32[B,5,2]")


def test_derivatives_of_the_weights(check):
    graph, state = nnx.split(drawn(2, 3, (3,)))

    def loss(state, x):
        return (nnx.merge(graph, state)(x) ** 2).sum()

    check(lambda x: jax.tree.leaves(jax.grad(loss)(state, x)), "f32[B,5,2]", rtol=1e-4, atol=1e-4)
