"""equinox convolutions with bias and batch become one operator, or JAX traces them as usual."""

from __future__ import annotations

from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from smelt.compiler import optimize
from smelt.frontends.jax import trace

KEY = jax.random.key(0)
MOVED = {"Reshape", "Unsqueeze", "Squeeze"}


def operators(model):
    return Counter(node.op_type for node in model.graph)


def drawn(make, *sizes, **options):
    """The layer with weights that NumPy draws: JAX would compile for each of their shapes."""
    shapes = eqx.filter_eval_shape(lambda: make(*sizes, key=KEY, **options))
    rng = np.random.default_rng(0)

    def draw(leaf):
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        return jnp.asarray(rng.uniform(-0.5, 0.5, leaf.shape), leaf.dtype)

    return jax.tree.map(draw, shapes)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_bias": False},
        {"padding": 1, "stride": 2},
        {"padding": ((0, 2), (3, 1)), "dilation": (1, 2)},
        {"padding": "SAME", "stride": (2, 3)},
        {"padding": "SAME_LOWER", "dilation": 2},
        {"groups": 2, "padding": "VALID"},
    ],
)
def test_a_convolution_of_a_batch_is_one_operator(check, options):
    layer = drawn(eqx.nn.Conv2d, 4, 6, 3, **options)
    found = operators(check(jax.vmap(layer), "f32[B,4,7,8]"))
    assert found["Conv"] == 1
    assert set(found) <= {"Conv", "Reshape"}  # of the bias, which is folded
    assert operators(optimize(trace(jax.vmap(layer), "f32[B,4,7,8]"))) == {"Conv": 1}


@pytest.mark.parametrize("make", [eqx.nn.Conv1d, eqx.nn.Conv3d])
def test_images_of_other_ranks(check, make):
    layer = drawn(make, 2, 3, 2)
    image = ",".join(["4"] * layer.num_spatial_dims)
    assert operators(check(layer, f"f32[2,{image}]"))["Conv"] == 1
    assert operators(check(jax.vmap(layer), f"f32[B,2,{image}]"))["Add"] == 0


def test_one_image_and_maps_of_maps(check):
    layer = drawn(eqx.nn.Conv2d, 2, 3, 2)
    assert set(operators(check(layer, "f32[2,5,4]"))) <= {"Conv", *MOVED}
    twice = jax.vmap(jax.vmap(layer, 1, 2), 0, 1)
    assert operators(check(twice, "f32[3,2,B,5,4]"))["Conv"] == 1


def test_an_empty_batch(check):
    check(jax.vmap(drawn(eqx.nn.Conv1d, 2, 3, 2)), "f32[0,2,5]", inputs=[[np.ones((0, 2, 5))]])


def test_mapped_weights_are_traced_as_usual(check):
    layers = eqx.filter_vmap(lambda key: eqx.nn.Conv1d(2, 3, 2, key=key))(jax.random.split(KEY, 4))
    mapped = eqx.filter_vmap(lambda layer, x: layer(x), in_axes=(eqx.if_array(0), None))
    check(lambda x: mapped(layers, x), "f32[2,5]")


def test_derivatives_are_those_of_the_layer(check):
    layer = drawn(eqx.nn.Conv2d, 2, 3, 2, padding=1)
    check(jax.vmap(jax.grad(lambda x: (layer(x) ** 2).sum())), "f32[B,2,4,3]")


@pytest.mark.parametrize("mode", ["REFLECT", "REPLICATE", "CIRCULAR"])
def test_images_with_nonzero_padding(check, mode):
    layer = drawn(eqx.nn.Conv1d, 2, 3, 3, padding=1, padding_mode=mode)
    check(jax.vmap(layer), "f32[B,2,5]")


def test_images_of_open_size_and_of_other_types(check):
    layer = drawn(eqx.nn.Conv2d, 2, 3, 2, padding=1)
    check(jax.vmap(layer), "f32[B,2,S,T]")
    half = jax.tree.map(lambda x: x.astype(jnp.float16) if eqx.is_array(x) else x, layer)
    check(jax.vmap(half), "f16[B,2,5,4]", rtol=1e-2, atol=1e-2)


def test_a_kernel_larger_than_its_image_gives_nothing(check):
    layer = drawn(eqx.nn.Conv1d, 2, 3, 7)
    assert trace(layer, "f32[2,3]").graph.outputs[0].shape == (3, 0)


def test_calls_that_equinox_refuses_are_refused_by_it():
    layer = drawn(eqx.nn.Conv1d, 2, 3, 2)
    with pytest.raises(Exception, match="rank 2"):
        trace(layer, "f32[4,2,5]")
