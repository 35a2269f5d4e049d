"""``smelt.function`` changes nothing outside of traces, and refuses what it cannot mark."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import threading

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from raised import raises_in_function

import smelt
from smelt.errors import UsageError
from smelt.frontends.jax import trace


@smelt.function
def scaled(x, factor: float = 2.0, *, shift=0):
    """Scales."""
    return [x * factor + shift, "text"]


class Plain:
    def __call__(self, x):
        return x + 1


raw = Plain.__call__
decorated = smelt.function(Plain)


@smelt.function(namespace="my.layers")
class Dense(eqx.Module):
    weight: jax.Array

    def __call__(self, x):
        return x @ self.weight


class Doubled(Dense):
    def __call__(self, x):
        return super().__call__(x) * 2


class Named(Dense):
    pass


def names(model):
    return [f"{f.domain}.{f.name}" for f in model.functions.values()]


def test_a_decorated_function_is_unchanged_outside_of_traces():
    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "Scales."
    assert str(inspect.signature(scaled)) == "(x, factor: 'float' = 2.0, *, shift=0)"
    assert inspect.isfunction(scaled)
    assert pickle.loads(pickle.dumps(scaled)) is scaled
    assert scaled(3, shift=1) == [7.0, "text"]
    assert "smelt" not in str(jax.make_jaxpr(lambda x: scaled(x)[0])(1.0))
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        scaled()


def test_a_decorated_function_may_branch_on_values_outside_of_traces():
    @smelt.function
    def sign(x):
        return 1 if x > 0 else -1

    assert sign(jnp.float32(3)) == 1


def test_a_class_stays_the_same_object():
    assert decorated is Plain
    assert vars(Plain)["__call__"] is raw
    layer = Dense(jnp.eye(2))
    before = vars(Dense)["__call__"]
    trace(layer, "f32[B,2]")
    assert vars(Dense)["__call__"] is before
    assert "__call__" not in vars(Named)
    again = pickle.loads(pickle.dumps(layer))
    assert type(again) is Dense
    assert type(copy.deepcopy(layer)) is Dense
    assert jax.tree.structure(again) == jax.tree.structure(layer)


def test_a_class_is_restored_after_an_error():
    class Failing(Plain):
        def __call__(self, x):
            raise RuntimeError("no")

    before = vars(Failing)["__call__"]
    with raises_in_function(RuntimeError, match="no"):
        trace(Failing(), "f32[2]", functions=[Failing])
    assert vars(Failing)["__call__"] is before


def test_subclasses_inherit_and_calls_by_super_count_as_the_base():
    eye = jnp.eye(2)
    assert names(trace(Named(eye), "f32[B,2]")) == ["my.layers.Named"]
    assert names(trace(Doubled(eye), "f32[B,2]")) == ["my.layers.Dense"]


def test_methods(check):
    class Net(nnx.Module):
        def __init__(self):
            self.w = nnx.Param(jnp.arange(3.0))

        @smelt.function
        def once(self, x):
            return x * self.w[...]

        @smelt.function
        def __call__(self, x):
            return self.once(self.once(x))

    model = check(Net(), "f32[B,3]")
    assert names(model) == ["smelt.fn.once", "smelt.fn.Net"]


def test_results_keep_objects_that_are_not_arrays():
    seen = []

    def net(x):
        seen.append(scaled(x))
        return seen[0][0]

    trace(net, "f32[2]")
    assert seen[0][1] == "text"


def test_other_threads_see_the_plain_class():
    inside, done = threading.Event(), threading.Event()

    def net(x):
        inside.set()
        done.wait(10)
        return Dense(jnp.eye(2))(x)

    models = []
    thread = threading.Thread(target=lambda: models.append(trace(net, "f32[B,2]")))
    thread.start()
    inside.wait(10)
    layer = Dense(jnp.eye(2))
    assert "smelt" not in str(jax.make_jaxpr(layer)(jnp.ones((1, 2))))
    np.testing.assert_array_equal(layer(jnp.ones((1, 2))), jnp.ones((1, 2)))
    done.set()
    thread.join()
    assert names(models[0]) == ["my.layers.Dense"]


@pytest.mark.parametrize(
    "target",
    [
        *(functools.partial(int), jax.jit(abs), Plain(), staticmethod(abs), np.sin, 3),
        *(nn.Dense, type("Silent", (), {})),
    ],
    ids=["partial", "jit", "instance", "staticmethod", "ufunc", "number", "linen", "no __call__"],
)
def test_others_are_refused(target):
    with pytest.raises(UsageError) as caught:
        smelt.function(target)
    assert caught.value.code == "E111"


@pytest.mark.parametrize(
    "namespace", ["", "ai.onnx", "ai.onnx.ml", "smelt", "a b", "com.microsoft"]
)
def test_domains_of_operators_are_no_namespaces(namespace):
    with pytest.raises(UsageError) as caught:
        smelt.function(namespace=namespace)
    assert caught.value.code == "E111"
