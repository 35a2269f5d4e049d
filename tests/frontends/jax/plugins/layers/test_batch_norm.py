"""Batch normalization with the statistics of a layer becomes one operator."""

from __future__ import annotations

from collections import Counter

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import errors, nnx
from raised import raises_in_function

from smelt.compiler import optimize
from smelt.frontends.jax import trace

PARTS = [{}, {"use_bias": False}, {"use_scale": False}, {"use_bias": False, "use_scale": False}]


def operators(model):
    return Counter(node.op_type for node in model.graph)


def vary(tree):
    rng = np.random.default_rng(0)
    return jax.tree.map(lambda x: jnp.asarray(rng.uniform(0.5, 2, x.shape), x.dtype), tree)


def of_nnx(**options):
    layer = nnx.BatchNorm(6, use_running_average=True, rngs=nnx.Rngs(0), **options)
    nnx.update(layer, vary(nnx.state(layer)))
    return layer


def of_linen(shape=(1, 6), **options):
    layer = nn.BatchNorm(use_running_average=True, **options)
    variables = vary(jax.eval_shape(layer.init, jax.random.key(0), jnp.ones(shape)))
    return lambda x: layer.apply(variables, x)


@pytest.mark.parametrize("make", [of_nnx, of_linen])
@pytest.mark.parametrize("options", PARTS)
def test_one_operator(check, make, options):
    layer = make(**options)
    assert operators(check(layer, "f32[B,6]")) == {"BatchNormalization": 1}
    images = operators(check(layer, "f32[B,4,5,6]"))
    assert images == {"BatchNormalization": 1, "Transpose": 2}


@pytest.mark.parametrize("make", [of_nnx, of_linen])
def test_batches_and_derivatives(check, make):
    layer = make()
    mapped = operators(check(jax.vmap(layer, 1, 1), "f32[2,B,4,6]"))
    assert mapped["BatchNormalization"] == 1
    check(jax.grad(lambda x: jnp.sum(jnp.sin(jax.jit(layer)(x)))), "f32[3,6]")


UNUSUAL = {
    "half": (lambda: of_nnx(dtype=jnp.float16), "f16[B,6]"),
    "half in linen": (lambda: of_linen(dtype=jnp.float16), "f16[B,6]"),
    "channels second": (lambda: of_nnx(axis=1), "f32[B,6,5]"),
    "channels second in linen": (lambda: of_linen((1, 6, 1), axis=1), "f32[B,6,5]"),
}


@pytest.mark.parametrize("name", UNUSUAL)
def test_other_types_and_axes_are_traced_as_they_are(check, name):
    make, spec = UNUSUAL[name]
    found = operators(check(make(), spec, rtol=1e-2, atol=1e-2))
    assert found["BatchNormalization"] == 0


def test_statistics_of_the_batch_are_computed(check):
    layer = nn.BatchNorm(use_running_average=False)
    variables = layer.init(jax.random.key(0), jnp.ones((1, 6)))

    def train(x):
        return layer.apply(variables, x, mutable="batch_stats")

    assert operators(check(train, "f32[5,6]"))["BatchNormalization"] == 0


def test_parameters_that_are_inputs():
    model = trace(of_nnx(), "f32[B,6]", input_params="*")
    assert operators(model)["BatchNormalization"] == 0
    assert len(model.graph.inputs) == 5


def test_batch_norm_folds_into_the_convolution_before_it(check):
    class Layers(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.Conv(6, (3, 3))(x)
            return nn.relu(nn.BatchNorm(use_running_average=True)(x))

    layers = Layers()
    shapes = jax.eval_shape(layers.init, jax.random.key(0), jnp.ones((1, 8, 8, 3)))
    variables = vary(shapes)
    model = check(lambda x: layers.apply(variables, x), "f32[B,8,8,3]", atol=1e-5)
    assert operators(optimize(model)) == {"Conv": 1, "Relu": 1, "Transpose": 2}


def test_linen_still_checks_its_arguments():
    with raises_in_function(TypeError, match="incompatible shapes"):
        trace(of_linen(), "f32[B,7]")
    layer = nn.BatchNorm(use_running_average=True)
    given = {"params": {"scale": jnp.ones(6)}, "batch_stats": {"mean": jnp.ones(6)}}
    with raises_in_function(errors.ScopeVariableNotFoundError):
        trace(lambda x: layer.apply(given, x), "f32[B,6]")
