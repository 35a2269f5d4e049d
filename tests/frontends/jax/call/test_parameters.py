"""``input_params`` makes arrays that a function holds inputs of the model."""

from __future__ import annotations

import functools
import math

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
import pytest
from flax import nnx

from smelt.errors import UsageError
from smelt.frontends.jax import trace

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
GLOBAL = jnp.arange(4.0) + 1


def converted(fn, patterns, spec="f32[B,4]", **options):
    """Return the model of ``fn`` with its parameters as inputs, and the names of these inputs."""
    model = trace(fn, spec, input_params=patterns, **options)
    return model, [value.name for value in model.graph.inputs][1:]


@pytest.fixture
def gives(computed):
    """Return ``gives(model, parameters, expected)``, which asserts the model's result for ``X``."""

    def gives(model: ir.Model, parameters, expected, tolerance=2e-5):
        got = computed(model, [X, *(np.asarray(array) for array in parameters)])
        assert len(got) == len(expected)
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 10)

    return gives


def nnx_model():
    rngs = nnx.Rngs(0)
    return nnx.Sequential(nnx.Linear(4, 5, rngs=rngs), nnx.relu, nnx.Linear(5, 2, rngs=rngs))


def constants(model):
    """Return the names of the float arrays that remained weights of the model."""
    return sorted(n for n in model.graph.initializers if not n.startswith("const_"))


def test_parameters_of_an_nnx_module(gives):
    first, second = nnx_model(), nnx_model()
    model, names = converted(first, "*_kernel")
    assert names == ["layers_0_kernel", "layers_2_kernel"]
    assert constants(model) == ["layers_0_bias", "layers_2_bias"]
    kernels = [second.layers[i].kernel[...] * 2 for i in (0, 2)]
    for layer, kernel in zip((0, 2), kernels, strict=True):
        second.layers[layer].kernel[...] = kernel
    gives(model, kernels, [second(X)])
    assert isinstance(first.layers[0].kernel[...], jax.Array)


def test_parameters_of_a_method_of_an_nnx_module(gives):
    class Model(nnx.Module):
        def __init__(self):
            self.table = nnx.Param(jnp.ones((4, 2)))

        def head(self, x, *, scale):
            return x @ self.table[...] * scale

    module = Model()
    model, names = converted(module.head, ["table"], static={"scale": 2.0})
    assert names == ["table"]
    table = np.full((4, 2), 3, np.float32)
    gives(model, [table], [X @ table * 2])


def test_a_shared_nnx_module_is_one_input():
    class Tied(nnx.Module):
        def __init__(self):
            self.first = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
            self.second = self.first

        def __call__(self, x):
            return self.second(self.first(x))

    model, names = converted(Tied(), "*")
    assert names == ["first_bias", "first_kernel"]
    assert constants(model) == []


def test_parameters_of_linen_variables(gives):
    module = nn.Dense(2)
    variables = module.init(jax.random.key(0), X)
    model, names = converted(functools.partial(module.apply, variables), ["*kernel"])
    assert names == ["variables_params_kernel"]
    assert constants(model) == ["variables_params_bias"]
    kernel = np.ones((4, 2), np.float32)
    bias = variables["params"]["bias"]
    expected = module.apply({"params": {"kernel": kernel, "bias": bias}}, X)
    gives(model, [kernel], [expected])


def test_parameters_of_an_equinox_module_and_its_method():
    module = eqx.nn.MLP(4, 2, 8, 1, key=jax.random.key(0))
    _, names = converted(jax.vmap(module), "*_weight")
    assert names == ["layers_0_weight", "layers_1_weight"]
    model, names = converted(module, "layers_?_weight", "f32[4]")
    assert names == ["layers_0_weight", "layers_1_weight"]
    assert constants(model) == ["layers_0_bias", "layers_1_bias"]
    _, names = converted(module.__call__, "layers_1_*", "f32[4]")
    assert names == ["layers_1_weight", "layers_1_bias"]


def test_parameters_in_closures_and_partials(gives):
    weight, bias = jnp.ones((4, 2)), np.ones(2, np.float32)

    def dense(x):
        return x @ weight

    def fn(x, offset, *, scale):
        return (dense(x) + bias + offset) * scale

    full = functools.partial(fn, offset=jnp.ones(2), scale=jnp.float32(3))
    model, names = converted(full, "*")
    assert names == ["bias", "dense_weight", "offset", "scale"]
    given = [np.full(s, i + 2, np.float32) for i, s in enumerate([2, (4, 2), 2, ()])]
    gives(model, given, [(X @ given[1] + given[0] + given[2]) * given[3]])


def scaled(x):
    return x * GLOBAL


def test_parameters_in_global_variables(gives):
    model, names = converted(lambda x: scaled(x) + GLOBAL, "GLOBAL")
    assert names == ["GLOBAL"]
    gives(model, [np.full(4, 5, np.float32)], [X * 5 + 5])
    assert GLOBAL[0] == 1


def test_recursive_functions_end():
    weight = jnp.ones(4)

    def power(x, n):
        return x if n == 0 else power(x, n - 1) * weight

    with pytest.raises(UsageError, match="cannot become an input") as caught:
        converted(power, "weight", static={"n": 2})
    assert caught.value.code == "E110"


def test_an_array_under_two_names_is_one_input(gives):
    weight = jnp.ones(4)
    same = weight
    model, names = converted(lambda x: x * weight + same, "*")
    assert len(names) == 1
    gives(model, [np.full(4, 3, np.float32)], [X * 3 + 3])


def test_arrays_that_are_never_read_are_no_inputs():
    used, unused = jnp.ones(4), jnp.ones(4)
    _, names = converted(lambda x: (x * used, unused)[0], "*used")
    assert names == ["used"]
    with pytest.raises(UsageError, match="no parameter that matches"):
        converted(lambda x: (x * used, unused)[0], "unused")


def test_a_parameter_may_be_an_output(gives):
    weight = jnp.ones(4)
    model, _ = converted(lambda x: (weight, x), "weight")
    gives(model, [np.full(4, 3, np.float32)], [np.full(4, 3, np.float32), X])


def test_types_of_parameters_are_those_that_jax_gives_them():
    wide = np.arange(4, dtype=np.float64)
    small = jnp.arange(4, dtype=jnp.bfloat16)
    model, _ = converted(lambda x: x * wide + small, "*")
    assert [value.dtype.name for value in model.graph.inputs] == ["FLOAT", "BFLOAT16", "FLOAT"]
    model, _ = converted(lambda x: x * wide, "wide", x64=True)
    assert [value.dtype.name for value in model.graph.inputs] == ["FLOAT", "DOUBLE"]


def test_parameter_names_differ_from_argument_names():
    scale, y = jnp.ones(4), jnp.ones(4)
    inner = functools.partial(lambda p, x: x * p["x"] + y, {"x": scale})
    assert converted(inner, "p_x")[1] == ["p_x"]
    fn = lambda y: lambda x: x * y  # noqa: E731
    hold = fn(y)
    assert converted(lambda hold_y: hold(hold_y) + 1, "hold_y")[1] == ["hold_y_2"]
    assert converted(hold, "*", input_names={"y": "gain"})[1] == ["gain"]


@pytest.mark.parametrize("patterns", ["nothing", ["layers_0_*", "Layers_*"]])
def test_a_pattern_without_an_array_is_refused(patterns):
    with pytest.raises(UsageError) as caught:
        converted(nnx_model(), patterns)
    assert caught.value.code == "E110"
    assert "layers_0_bias, layers_0_kernel" in caught.value.fix


def test_an_array_that_jit_captured_cannot_become_an_input():
    weight = jnp.ones(4)
    hidden = jax.jit(lambda x: x * weight)
    with pytest.raises(UsageError, match="cannot become an input") as caught:
        converted(lambda x: hidden(x) + weight, "weight")
    assert "as an argument" in caught.value.fix


def test_batch_statistics_and_keys_of_dropout_do_not_disturb(gives):
    class Model(nnx.Module):
        def __init__(self):
            rngs = nnx.Rngs(0)
            self.drop = nnx.Dropout(0.5, rngs=rngs)
            self.norm = nnx.BatchNorm(4, rngs=rngs)

        def __call__(self, x):
            return self.norm(self.drop(x))

    module = Model()
    module.eval()
    model, names = converted(module, "*")
    assert names == ["norm_bias", "norm_mean", "norm_scale", "norm_var"]
    given = [np.asarray(a, np.float32) for a in (np.ones(4), np.zeros(4), np.ones(4), np.ones(4))]
    gives(model, given, [X / math.sqrt(1 + 1e-5) + 1])
