"""Whole models: flax nnx and linen, equinox; each at two sizes of the batch."""

from __future__ import annotations

import importlib
from collections import Counter

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from smelt.frontends.jax import trace

EXAMPLES = {
    "examples.mlp": "f32[B,16]",
    "examples.cnn": "f32[B,28,28,1]",
    "examples.small_cnn": "f32[B,16,16,1]",
    "examples.transformer": "i32[B,16]",
}


@pytest.fixture(autouse=True)
def examples_are_importable(monkeypatch, pytestconfig):
    monkeypatch.syspath_prepend(pytestconfig.rootpath)


@pytest.mark.parametrize("module", EXAMPLES)
def test_examples(check, module):
    model = importlib.import_module(module).model
    check(model, EXAMPLES[module], compiled=True, rtol=1e-4, atol=1e-5)


def test_a_transformer_of_any_length(check):
    model = importlib.import_module("examples.transformer").model
    check(model, "i32[B,S]", constraints=("S <= 64",), compiled=True, rtol=1e-4, atol=1e-5)


class Residual(nn.Module):
    features: int
    strides: int

    @nn.compact
    def __call__(self, x):
        y = nn.Conv(self.features, (3, 3), (self.strides,) * 2, use_bias=False)(x)
        y = nn.relu(nn.BatchNorm(use_running_average=True)(y))
        y = nn.BatchNorm(use_running_average=True)(
            nn.Conv(self.features, (3, 3), use_bias=False)(y)
        )
        if x.shape != y.shape:
            x = nn.Conv(self.features, (1, 1), (self.strides,) * 2, use_bias=False)(x)
        return nn.relu(x + y)


class ResNet(nn.Module):
    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.BatchNorm(use_running_average=True)(nn.Conv(8, (7, 7), (2, 2))(x)))
        x = nn.max_pool(x, (3, 3), (2, 2), "SAME")
        for features, strides in ((8, 1), (16, 2), (16, 1)):
            x = Residual(features, strides)(x)
        return nn.Dense(5)(x.mean((1, 2)))


@pytest.mark.slow
def test_linen_resnet(check):
    model = ResNet()
    variables = jax.jit(model.init)(jax.random.key(0), jnp.ones((1, 32, 32, 3)))
    rng = np.random.default_rng(0)
    variables = jax.tree.map(
        lambda v: v + jnp.asarray(np.abs(rng.standard_normal(v.shape)) * 0.1, v.dtype), variables
    )
    check(
        lambda x: model.apply(variables, x), "f32[B,32,32,3]", compiled=True, rtol=1e-4, atol=1e-4
    )


class Vit(nnx.Module):
    def __init__(self, rngs):
        self.patches = nnx.Conv(3, 32, (8, 8), (8, 8), padding="VALID", rngs=rngs)
        self.cls = nnx.Param(jax.random.normal(rngs.params(), (1, 1, 32)))
        self.positions = nnx.Param(jax.random.normal(rngs.params(), (1, 17, 32)))
        self.norm = nnx.LayerNorm(32, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(4, 32, decode=False, rngs=rngs)
        self.mlp = nnx.Linear(32, 32, rngs=rngs)

    def __call__(self, x):
        x = self.patches(x)
        x = x.reshape(x.shape[0], -1, 32)
        cls = jnp.broadcast_to(self.cls[...], (x.shape[0], 1, 32))
        x = jnp.concatenate([cls, x], axis=1) + self.positions[...]
        x = x + self.attention(self.norm(x))
        x = x + nnx.gelu(self.mlp(self.norm(x)))
        return x[:, 0]


def test_nnx_vit(check):
    check(Vit(nnx.Rngs(0)), "f32[B,32,32,3]", compiled=True, rtol=1e-4, atol=1e-4)


def test_equinox_mlp_and_cnn(check):
    mlp = eqx.nn.MLP(4, 3, 16, 2, key=jax.random.key(0))
    check(jax.vmap(mlp), "f32[B,4]", compiled=True, rtol=1e-4)
    keys = jax.random.split(jax.random.key(1), 2)
    cnn = eqx.nn.Sequential(
        [
            eqx.nn.Conv2d(1, 4, 3, key=keys[0]),
            eqx.nn.Lambda(jax.nn.relu),
            eqx.nn.MaxPool2d(2, 2),
            eqx.nn.Lambda(jnp.ravel),
            eqx.nn.Linear(4 * 5 * 5, 3, key=keys[1]),
        ]
    )
    check(jax.vmap(cnn), "f32[B,1,12,12]", compiled=True, rtol=1e-4, atol=1e-5)


def test_equinox_attention_with_a_mask(check):
    attention = eqx.nn.MultiheadAttention(2, 8, key=jax.random.key(0))
    mask = jnp.tril(jnp.ones((6, 6), bool))
    check(
        jax.vmap(lambda x: attention(x, x, x, mask=mask)),
        "f32[B,6,8]",
        compiled=True,
        rtol=1e-4,
        atol=1e-5,
    )


@pytest.mark.slow
def test_recurrent_networks(check):
    cell = eqx.nn.GRUCell(3, 5, key=jax.random.key(0))

    def run(xs):
        return jax.lax.scan(lambda h, x: (cell(x, h), h), jnp.zeros(5), xs)

    check(jax.vmap(run), "f32[B,7,3]", compiled=True, rtol=1e-4, atol=1e-5)
    lstm = nn.Bidirectional(nn.RNN(nn.LSTMCell(4)), nn.RNN(nn.LSTMCell(4)))
    variables = jax.jit(lstm.init)(jax.random.key(0), jnp.ones((1, 6, 3)))
    check(lambda x: lstm.apply(variables, x), "f32[B,6,3]", compiled=True, rtol=1e-4, atol=1e-5)


def test_gradients_convert_too(check):
    graph, state = nnx.split(nnx.Linear(8, 4, rngs=nnx.Rngs(0)))

    def loss(weights, x):
        return (nnx.softmax(nnx.merge(graph, weights)(x)) ** 2).sum()

    spec = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype), state)
    check(jax.grad(loss), spec, "f32[B,8]", compiled=True, rtol=1e-3, atol=1e-4)


def test_a_dense_layer_is_matmul_and_add_in_any_batch(check):
    model = check(nnx.Linear(8, 4, rngs=nnx.Rngs(0)), "f32[B,8]")
    counts = Counter(node.op_type for node in model.graph)
    assert counts == {"DotGeneral": 1, "Add": 1}


def test_parameters_are_shared_and_named():
    layer = nnx.Linear(512, 512, rngs=nnx.Rngs(0))
    model = trace(lambda x: layer(layer(x)), "f32[B,512]")
    large = [v for v in model.graph.initializers.values() if v.const_value.nbytes > 1024]
    assert len(large) == 2
    held = next(v.const_value.numpy() for v in large if len(v.shape) == 2)
    assert np.shares_memory(held, np.asarray(layer.kernel[...]))
