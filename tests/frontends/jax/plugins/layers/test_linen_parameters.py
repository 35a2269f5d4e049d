"""Parameters of flax linen are compared with their initializers once."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
from flax import errors
from raised import raises_in_function

from smelt.frontends.jax import trace


class Repeated(nn.Module):
    """Layers with equal parameters."""

    kernel: object
    features: int = 4

    @nn.compact
    def __call__(self, x):
        for _ in range(5):
            x = nn.Dense(self.features, kernel_init=self.kernel)(x)
        return x


class Initializer:
    """An initializer that counts its calls."""

    def __init__(self):
        self.calls = 0

    def __call__(self, key, shape, dtype=jnp.float32):
        self.calls += 1
        return nn.initializers.lecun_normal()(key, shape, dtype)


def test_equal_parameters_are_compared_once(check):
    init = Initializer()
    module = Repeated(init)
    variables = module.init(jax.random.key(0), jnp.ones((1, 4)))
    init.calls = 0
    for _ in range(2):
        trace(lambda x: module.apply(variables, x), "f32[B,4]")
        assert init.calls == 1
    check(lambda x: module.apply(variables, x), "f32[B,4]")


class Heads(nn.Module):
    """Layers that create new wrappers of their initializers in each call."""

    kernel: object

    @nn.compact
    def __call__(self, x):
        for _ in range(3):
            x = nn.DenseGeneral((2, 4), axis=(-2, -1), kernel_init=self.kernel)(x)
        return x


def test_initializers_that_are_made_anew_are_compared_once():
    init = Initializer()
    module = Heads(init)
    variables = module.init(jax.random.key(0), jnp.ones((1, 2, 4)))
    init.calls = 0
    trace(lambda x: module.apply(variables, x), "f32[B,2,4]")
    assert init.calls == 1


def test_a_parameter_of_another_shape_is_refused_each_time():
    module, other = Repeated(nn.initializers.ones), Repeated(nn.initializers.ones, 5)
    variables = module.init(jax.random.key(0), jnp.ones((1, 4)))
    trace(lambda x: module.apply(variables, x), "f32[B,4]")
    for _ in range(2):
        with raises_in_function(errors.ScopeParamShapeError):
            trace(lambda x: other.apply(variables, x), "f32[B,4]")


def test_boxed_parameters_and_initializers_with_keywords(check):
    boxed = nn.with_partitioning(nn.initializers.lecun_normal(), ("a", "b"))
    module = Repeated(boxed)
    variables = module.init(jax.random.key(0), jnp.ones((1, 4)))
    check(lambda x: module.apply(variables, x), "f32[B,4]")


def test_a_repeated_parameter_name_is_refused():
    class Twice(nn.Module):
        @nn.compact
        def __call__(self, x):
            first = self.param("w", nn.initializers.ones, (4,))
            return x * first * self.param("w", nn.initializers.ones, (4,))

    variables = {"params": {"w": jnp.ones(4)}}
    with raises_in_function(errors.NameInUseError):
        trace(lambda x: Twice().apply(variables, x), "f32[4]")


def test_an_initializer_that_refers_to_itself(check):
    def init(key, shape, dtype, depth=2):
        return init(key, shape, dtype, depth - 1) if depth else jnp.ones(shape, dtype)

    module = Repeated(init)
    variables = module.init(jax.random.key(0), jnp.ones((1, 4)))
    check(lambda x: module.apply(variables, x), "f32[B,4]")
