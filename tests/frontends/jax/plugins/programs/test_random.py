"""Random bits equal JAX's; floats computed from them may differ by rounding."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import random

import smelt
from smelt.errors import SmeltError
from smelt.frontends.jax import trace
from smelt.frontends.onnx import to_proto

KEYS = [[np.array(key, np.uint32)] for key in ((0, 0), (0, 42), (0xFFFFFFFF, 0x80000001))]
SPEC = "u32[2]"

EXACT = {
    "uniform": lambda k: random.uniform(k, (5, 3)),
    "uniform_f16": lambda k: random.uniform(k, (5,), jnp.float16),
    "randint": lambda k: random.randint(k, (9,), -5, 100),
    "randint_i8": lambda k: random.randint(k, (9,), -128, 128, jnp.int8),
    "randint_u8": lambda k: random.randint(k, (9,), 3, 250, jnp.uint8),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (12,)),
    "rademacher": lambda k: random.rademacher(k, (12,)),
    "permutation": lambda k: random.permutation(k, 10),
    "permutation_of_rows": lambda k: random.permutation(k, jnp.arange(12).reshape(4, 3)),
    "permutation_independent": lambda k: random.permutation(
        k, jnp.arange(12).reshape(4, 3), axis=1, independent=True
    ),
    "choice": lambda k: random.choice(k, 7, (5,)),
    "choice_without_replacement": lambda k: random.choice(k, jnp.arange(9), (5,), replace=False),
    "choice_weighted": lambda k: random.choice(k, 3, (9,), p=jnp.array([0.2, 0.5, 0.3])),
    "categorical": lambda k: random.categorical(k, jnp.array([0.1, 2.0, -1.0]), shape=(9,)),
    "poisson": lambda k: random.poisson(k, 3.0, (6,)),
    "poisson_large": lambda k: random.poisson(k, jnp.array([0.0, 12.0, 300.0])),
    "geometric": lambda k: random.geometric(k, 0.3, (6,)),
    "binomial_certain": lambda k: random.binomial(k, 20.0, jnp.array([0.0, 1.0])),
    "multinomial": lambda k: random.multinomial(k, 10.0, jnp.array([0.2, 0.3, 0.5])),
    "binomial": lambda k: random.binomial(k, 20.0, 0.3, (6,)),
}

ROUNDED = {
    "uniform_between": lambda k: random.uniform(k, (5,), minval=-3.0, maxval=7.0),
    "normal": lambda k: random.normal(k, (64,)),
    "truncated_normal": lambda k: random.truncated_normal(k, -1.0, 2.0, (20,)),
    "gumbel": lambda k: random.gumbel(k, (20,)),
    "exponential": lambda k: random.exponential(k, (20,)),
    "laplace": lambda k: random.laplace(k, (20,)),
    "logistic": lambda k: random.logistic(k, (20,)),
    "cauchy": lambda k: random.cauchy(k, (20,)),
    "gamma": lambda k: random.gamma(k, jnp.array([0.3, 1.0, 7.5])),
    "beta": lambda k: random.beta(k, 2.0, 0.5, (6,)),
    "rayleigh": lambda k: random.rayleigh(k, 2.0, shape=(6,)),
    "pareto": lambda k: random.pareto(k, 2.0, shape=(6,)),
    "weibull": lambda k: random.weibull_min(k, 2.0, 1.5, shape=(6,)),
    "lognormal": lambda k: random.lognormal(k, shape=(6,)),
    "maxwell": lambda k: random.maxwell(k, (6,)),
}


@pytest.mark.parametrize("name", EXACT)
def test_the_same_numbers(check, name):
    check(EXACT[name], SPEC, inputs=KEYS, rtol=0, atol=0, compiled=True)


@pytest.mark.parametrize("name", ROUNDED)
def test_the_same_numbers_but_for_rounding(check, name):
    check(ROUNDED[name], SPEC, inputs=KEYS, rtol=1e-4, atol=1e-5, compiled=True)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (2, 3, 4)])
def test_bits_of_every_width_and_shape(check, width, shape):
    dtype = jnp.dtype(f"uint{width}")
    check(lambda k: random.bits(k, shape, dtype), SPEC, inputs=KEYS, x64=True)


@pytest.mark.parametrize("draw", [random.uniform, random.normal], ids=lambda fn: fn.__name__)
def test_double_precision(check, draw):
    check(lambda k: draw(k, (20,), jnp.float64), SPEC, inputs=KEYS, x64=True, rtol=1e-13)


def test_wide_integers(check):
    limits = -(2**40), 2**50
    check(lambda k: random.randint(k, (9,), *limits, jnp.int64), SPEC, inputs=KEYS, x64=True)


def test_shapes_from_symbolic_dims(check):
    def noise(k, x):
        return x + random.uniform(k, x.shape), random.bernoulli(k, 0.5, x.shape)

    key = np.array([1, 2], np.uint32)
    rows = [np.ones((n, 4), np.float32) for n in (1, 3)]
    check(noise, SPEC, "f32[B,4]", inputs=[[key, x] for x in rows], rtol=0)


def test_streams_that_are_not_partitionable(check):
    def draw(k):
        return random.split(k, 3), random.bits(k, (5,)), random.bits(k, (5,), jnp.uint8)

    with jax.threefry_partitionable(False):
        check(draw, SPEC, inputs=KEYS)


def test_dropout_of_a_layer(check):
    def dropout(k, x):
        keep = random.bernoulli(k, 0.9, x.shape)
        return jnp.where(keep, x / 0.9, 0)

    check(dropout, SPEC, "f32[4,8]")


@pytest.mark.parametrize("typed", [False, True])
def test_clones_draw_as_their_keys_do(check, typed):
    def draw(k):
        clone = random.clone(random.wrap_key_data(k) if typed else k)
        return random.bits(clone, (3,))

    check(draw, SPEC, inputs=KEYS, rtol=0)


@pytest.mark.parametrize("name", ["rbg", "unsafe_rbg"])
def test_generators_of_xla_are_refused(name):
    with pytest.raises(SmeltError, match="E102") as caught:
        trace(lambda x: x + random.uniform(random.key(0, impl=name), (3,)), "f32[3]")
    assert "threefry2x32" in str(caught.value)


def test_one_draw_is_a_few_nodes():
    model = trace(lambda k: random.bits(k, (3,)), SPEC)
    assert [n.op_type for n in model.graph if n.domain] == ["Threefry2x32"]
    assert len(list(model.graph)) < 8


DRAWS = ("uniform", "bernoulli", "normal", "truncated_normal", "gumbel", "exponential")


def nodes_of(nodes):
    """All but constants, in subgraphs too."""
    inner = (attribute.g.node for node in nodes for attribute in node.attribute)
    return sum(node.op_type != "Constant" for node in nodes) + sum(
        map(nodes_of, filter(None, inner))
    )


@pytest.mark.parametrize("name", DRAWS)
def test_a_draw_is_a_small_model(name):
    draw = {**EXACT, **ROUNDED}[name]
    proto = to_proto(smelt.optimize(trace(draw, SPEC)))
    total = nodes_of(proto.graph.node) + sum(nodes_of(each.node) for each in proto.functions)
    assert total <= 120


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_floats_are_made_of_their_bits_by_arithmetic(check, dtype):
    model = check(lambda k: random.uniform(k, (5, 3), dtype), SPEC, inputs=KEYS, rtol=0, x64=True)
    assert "Bitcast" not in {node.op_type for node in model.graph}
