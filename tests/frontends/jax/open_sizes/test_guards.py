"""A trace leaves libraries and modules unchanged, and shares equal weights."""

from __future__ import annotations

import sys
import threading

import equinox as eqx
import flax.linen as nn
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from flax import nnx
from raised import raises_in_function

from smelt.frontends.jax import trace
from smelt.ir.text import canonical
from smelt.runtime.runner import run

PACKAGES = ("jax", "flax", "equinox")


def public_names():
    """Return the objects of all public names in loaded modules of JAX, flax and equinox."""
    modules = [
        module
        for name, module in sorted(sys.modules.items())
        if name.split(".")[0] in PACKAGES and not any(p.startswith("_") for p in name.split("."))
    ]
    return {
        (module.__name__, name): vars(module)[name]
        for module in modules
        for name in dir(module)
        if not name.startswith("_") and name in vars(module)
    }


def test_a_trace_restores_public_names_of_libraries():
    linear = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
    dense = nn.Dense(4)
    variables = dense.init(jax.random.key(0), jnp.ones(4))
    mlp = eqx.nn.MLP(4, 4, 8, 1, key=jax.random.key(0))

    def fn(x):
        y = jax.nn.gelu(linear(x)) + dense.apply(variables, x) + jax.vmap(mlp)(x)
        return jnp.sort(jax.scipy.special.erf(y))

    def failing(x):
        raise RuntimeError("inside the trace")

    trace(fn, "f32[B,4]")
    before, methods = public_names(), {k: vars(nnx.Linear)[k] for k in ("__call__", "__init__")}
    trace(fn, "f32[B,4]")
    with raises_in_function(RuntimeError, match="inside the trace"):
        trace(failing, "f32[B,4]")
    after = public_names()
    assert [key for key in before if after[key] is not before[key]] == []
    assert all(vars(nnx.Linear)[k] is method for k, method in methods.items())
    assert len(before) > 1000


def test_a_trace_leaves_the_model_alone():
    module = nnx.BatchNorm(4, rngs=nnx.Rngs(0))
    leaves = jax.tree.leaves(nnx.state(module))
    for options in ({}, {"input_params": "*"}):
        trace(module, "f32[B,4]", static={"use_running_average": True}, **options)
    assert all(a is b for a, b in zip(leaves, jax.tree.leaves(nnx.state(module)), strict=True))


def test_two_threads_convert_at_once():
    kernels = [jnp.full((4, 4), i) for i in range(2)]
    fns = [lambda x, k=kernel: jax.nn.relu(x @ k) for kernel in kernels]
    expected = [canonical(trace(fn, "f32[B,4]")) for fn in fns]
    found: dict[int, list[str]] = {0: [], 1: []}
    barrier = threading.Barrier(2)

    def work(i: int) -> None:
        barrier.wait()
        for _ in range(5):
            found[i].append(canonical(trace(fns[i], "f32[B,4]")))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [set(found[i]) for i in range(2)] == [{expected[0]}, {expected[1]}]


def weights(model):
    return [v for v in model.graph.initializers.values() if v.const_value.size > 1000]


@pytest.mark.parametrize("make", [jnp.asarray, np.asarray])
def test_a_shared_weight_is_one_initializer(make):
    weight = make(np.linspace(0, 1, 1600, dtype=np.float32).reshape(40, 40))
    layer = jax.jit(lambda x: jnp.tanh(x @ weight))

    def fn(x):
        def step(carry, _):
            return carry @ weight, None

        y = jax.lax.cond(x.sum() > 0, lambda x: x @ weight, lambda x: x @ weight + 1, x)
        return layer(y) + layer(x @ weight) + jax.lax.scan(step, y, None, length=3)[0]

    assert len(weights(trace(fn, "f32[B,40]"))) == 1


def test_a_shared_nnx_variable_is_one_initializer():
    class Tied(nnx.Module):
        def __init__(self):
            self.embed = nnx.Embed(64, 32, rngs=nnx.Rngs(0))

        def __call__(self, tokens):
            return self.embed.attend(self.embed(tokens))

    (weight,) = weights(trace(Tied(), "i32[B,S]"))
    assert weight.name == "embed_embedding"


DTYPES = {
    "bool": (jnp.logical_not, np.bool_),
    "i8": (lambda x: x * 3 - x, np.int8),
    "u8": (lambda x: x + x // 3, np.uint8),
    "i32": (lambda x: (x * x, x.astype(jnp.float32) / 2), np.int32),
    "f16": (lambda x: jnp.tanh(x) + x, np.float16),
}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types_with_64_bits_on_and_off(check, dtype, x64):
    fn, numpy_type = DTYPES[dtype]
    model = check(fn, f"{dtype}[B,3]", x64=x64, rtol=2e-3, atol=2e-3)
    assert model.graph.inputs[0].dtype.numpy() == numpy_type


@pytest.mark.parametrize("x64", [False, True])
def test_bfloat16(x64):
    model = trace(lambda x: (x.astype(jnp.float32) * 2, x), "bf16[B,3]", x64=x64)
    x = np.array([[1.5, -0.0, np.inf]], ml_dtypes.bfloat16)
    doubled, same = run(model, [x])
    np.testing.assert_array_equal(doubled, x.astype(np.float32) * 2)
    assert (doubled.dtype, same.dtype) == (np.float32, ml_dtypes.bfloat16)
    np.testing.assert_array_equal(same.view(np.uint16), x.view(np.uint16))


@pytest.mark.parametrize("dtype", ["i64", "u64", "f64"])
def test_64_bits_are_kept(check, dtype):
    model = check(lambda x: x * 2 + jnp.arange(3, dtype=x.dtype), f"{dtype}[B,3]", x64=True)
    assert model.graph.outputs[0].dtype == model.graph.inputs[0].dtype


@pytest.mark.parametrize(("x64", "name"), [(False, "FLOAT"), (True, "DOUBLE")])
def test_numbers_and_wide_constants_follow_the_switch(x64, name):
    wide = np.arange(3.0)
    model = trace(lambda x: x + wide, 2.0, x64=x64)
    assert [v.dtype.name for v in (*model.graph.inputs, *model.graph.outputs)] == [name, name]
