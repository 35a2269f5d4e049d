"""Marked calls become ONNX functions: their number, their sharing, and results equal to JAX's."""

from __future__ import annotations

from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
import pytest
from flax import nnx

import smelt
from smelt.frontends.jax import trace


def functions(model: ir.Model) -> list[str]:
    return [function.name for function in model.functions.values()]


def calls(model: ir.Model) -> Counter[str]:
    return Counter(node.op_type for node in model.graph if node.op_identifier() in model.functions)


class Block(nnx.Module):
    def __init__(self, width: int, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(2, width, decode=False, rngs=rngs)
        self.up = nnx.Linear(width, 2 * width, rngs=rngs)
        self.down = nnx.Linear(2 * width, width, rngs=rngs)
        self.scale = nnx.Param(jax.random.normal(rngs.params(), ()))

    def __call__(self, x):
        x = x + self.attention(self.norm(x)) * self.scale[...]
        return x + self.down(nnx.gelu(self.up(x)))


class Stack(nnx.Module):
    def __init__(self, depth: int, width: int, rngs: nnx.Rngs):
        self.blocks = nnx.List([Block(width, rngs) for _ in range(depth)])

    def __call__(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def test_twelve_equal_blocks_are_one_function_and_twelve_calls(check):
    model = check(
        Stack(12, 8, nnx.Rngs(0)),
        "f32[B,S,8]",
        functions=[Block],
        compiled=True,
        rtol=1e-4,
        atol=1e-4,
    )
    assert functions(model) == ["Block"]
    assert [node.op_type for node in model.graph] == ["Block"] * 12
    function = next(iter(model.functions.values()))
    assert [value.name for value in function.inputs][:4] == [
        *("x", "norm_scale", "norm_bias", "attention_query_kernel"),
    ]
    assert len(function.inputs) == 16
    assert len(model.graph.initializers) == 12 * 15


def test_weights_of_each_call_are_its_own(check):
    @smelt.function
    def dense(x, w):
        return jnp.tanh(x @ w["kernel"] + w["bias"])

    keys = jax.random.split(jax.random.key(0), 3)
    layers = [{"kernel": jax.random.normal(k, (4, 4)), "bias": jnp.ones(4)} for k in keys]

    def net(x):
        for layer in layers:
            x = dense(x, layer)
        return x

    model = check(net, "f32[B,4]")
    assert calls(model) == {"dense": 3}
    assert functions(model) == ["dense"]


def test_other_shapes_or_types_give_another_function(check):
    @smelt.function
    def double(x):
        return x + x

    model = check(
        lambda a, b, c, d: (double(a), double(b), double(c), double(d)),
        *("f32[B,4]", "f32[4,B]", "i32[B,4]", "f32[B,4]"),
    )
    assert functions(model) == ["double", "double_2", "double_3"]
    assert calls(model) == {"double": 2, "double_2": 1, "double_3": 1}


def test_values_that_change_the_body_give_another_function(check):
    @smelt.function
    def power(x, exponent, sign=True):
        return x**exponent if sign else -(x**exponent)

    model = check(
        lambda x: power(x, 2) + power(x, 3) + power(x, 2, sign=False) + power(x, exponent=2),
        "f32[3]",
    )
    assert calls(model) == {"power": 2, "power_2": 1, "power_3": 1}


def test_nested_functions(check):
    @smelt.function
    def inner(x, w):
        return jnp.sin(x) * w

    @smelt.function
    def outer(x, w):
        return inner(inner(x, w), w + 1) + w

    v, w = jnp.arange(3.0), jnp.arange(3.0) + 5
    model = check(lambda x: outer(x, v) + outer(x, w) + inner(x, v), "f32[B,3]")
    assert functions(model) == ["inner", "outer"]
    assert calls(model) == {"outer": 2, "inner": 1}
    bodies = {function.name: function for function in model.functions.values()}
    assert Counter(n.op_type for n in bodies["outer"]) == {"inner": 2, "Add": 2, "Constant": 1}


def test_captures_of_nested_functions_reach_the_innermost(check):
    weights = [jnp.full(3, float(i)) for i in range(4)]

    def layer(i):
        @smelt.function
        def inner(x):
            return x * weights[i]

        @smelt.function
        def outer(x):
            return inner(x) + weights[i + 1]

        return outer

    model = check(lambda x: layer(2)(layer(0)(x)), "f32[B,3]")
    assert calls(model) == {"outer": 2}
    assert functions(model) == ["inner", "outer"]


def test_two_functions_of_one_name_stay_apart(check):
    def made(step):
        @smelt.function
        def layer(x):
            return x + step

        return layer

    @smelt.function
    def layer(x):
        return x * 2.0

    model = check(lambda x: made(1.0)(layer(made(1.0)(x))) + made(2.0)(x), "f32[3]")
    assert calls(model) == {"layer": 2, "layer_2": 1, "layer_3": 1}


def test_namespaces_are_domains(check):
    @smelt.function(namespace="my.net")
    def layer(x):
        return x + 1

    model = check(layer, "f32[B]")
    assert [(f.domain, f.name) for f in model.functions.values()] == [("my.net", "layer")]
    assert model.opset_imports["my.net"] == 1


def test_results_that_are_inputs_equal_unused_or_no_arrays(check):
    scale = jnp.arange(3.0)

    @smelt.function
    def several(x, y):
        unused = jnp.exp(x)
        return {"same": x, "twice": (x + y, x + y), "text": "a", "unused": unused, "w": scale}

    def net(x, y):
        result = several(x, y)
        assert result["text"] == "a"
        return result["same"], result["twice"], result["w"] * 2, y

    model = check(net, "f32[B,3]", "f32[3]")
    assert functions(model) == ["several"]

    @smelt.function
    def nothing(x):
        return x

    assert functions(check(nothing, "f32[B,3]")) == []


def test_results_of_calls_are_outputs(check):
    @smelt.function
    def split(x):
        return x[:, :1], x[:, 1:]

    model = check(split, "f32[B,4]")
    assert [value.name for value in model.graph.outputs] == ["out_0", "out_1"]
    assert [node.op_type for node in model.graph] == ["split"]


def test_sizes_that_no_input_of_the_function_has_are_passed(check):
    @smelt.function
    def mean(x, count):
        return x.sum() / count + jnp.zeros(count).sum()

    model = check(lambda x: mean(x * 2, x.shape[0] * 2), "f32[B,3]")
    assert functions(model) == ["mean"]

    @smelt.function
    def padded(x, like):
        return jnp.concatenate([x, jnp.ones(like.shape[0] + 1)])

    check(padded, "f32[4]", "f32[B]")


def test_in_bodies_of_scan_cond_and_while(check):
    @smelt.function
    def step(carry, x):
        return jnp.tanh(carry + x)

    w = jnp.arange(3.0)

    def net(xs):
        def scanned(carry, x):
            carry = step(carry, x * w)
            return carry, step(carry, w)

        carry, ys = jax.lax.scan(scanned, jnp.zeros(3), xs)
        chosen = jax.lax.cond(carry[0] > 0, step, lambda a, b: a - b, carry, w)
        looped = jax.lax.fori_loop(0, 3, lambda i, c: step(c, w), chosen)
        return ys, looped

    model = check(net, "f32[S,3]", rtol=1e-4)
    assert functions(model) == ["step"]


def test_control_flow_inside_of_functions(check):
    @smelt.function
    def running(xs, w):
        start = jnp.zeros(xs.shape[1:])
        total, all_ = jax.lax.scan(lambda c, x: (c * 0.5 + x @ w, c), start, xs)
        return jax.lax.cond(total.sum() > 0, lambda: total, lambda: -total) + xs.shape[0], all_

    a, b = jnp.eye(3), jnp.eye(3)[::-1]
    model = check(lambda xs: (running(xs, a), running(xs, b)), "f32[S,3]", rtol=1e-4)
    assert calls(model) == {"running": 2}


def test_under_jit_vmap_grad_and_checkpoint(check):
    @smelt.function
    def layer(x, w):
        return jnp.tanh(x @ w)

    w = jnp.asarray(np.random.default_rng(0).standard_normal((3, 3)), jnp.float32)

    def net(x):
        mapped = jax.vmap(layer, in_axes=(0, None))(x, w)
        slope = jax.grad(lambda v: jax.jit(layer)(v, w).sum())(x)
        return mapped, slope, jax.checkpoint(layer)(x, w), jax.jvp(layer, (x, w), (x, w))

    model = check(net, "f32[B,3]", rtol=1e-4)
    assert "layer" in functions(model)


def test_a_jitted_function_that_ran_before_has_functions_too(check):
    @smelt.function
    def layer(x):
        return x * 2

    net = jax.jit(lambda x: layer(x) + layer(x))
    before = net(jnp.ones((1, 2)))
    model = check(net, "f32[B,2]")
    assert functions(model) == ["layer"]
    np.testing.assert_array_equal(net(jnp.ones((1, 2))), before)
    assert "smelt" not in str(jax.make_jaxpr(net)(jnp.ones((1, 2))))


class Layer(eqx.Module):
    weight: jax.Array
    activation: object = eqx.field(static=True)

    def __call__(self, x):
        return self.activation(x @ self.weight)


def test_equinox_modules(check):
    keys = jax.random.split(jax.random.key(0), 4)
    layers = [Layer(jax.random.normal(key, (3, 3)), jnp.tanh) for key in keys]
    layers[3] = Layer(layers[3].weight, jnp.sin)
    net = eqx.nn.Sequential([eqx.nn.Lambda(layer) for layer in layers])
    model = check(net, "f32[3]", functions=["Layer"], rtol=1e-4)
    assert calls(model) == {"Layer": 3, "Layer_2": 1}
    mapped = check(jax.vmap(net), "f32[B,3]", functions=[Layer], rtol=1e-4)
    assert calls(mapped) == {"Layer": 3, "Layer_2": 1}


def test_weights_that_are_inputs_of_the_model(check):
    stack = Stack(2, 4, nnx.Rngs(0))
    model = trace(stack, "f32[B,S,4]", functions=[Block], input_params="*kernel")
    assert calls(model) == {"Block": 2}
    graph, state = nnx.split(stack)
    spec = jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape, v.dtype), state)
    merged = check(
        lambda state, x: nnx.merge(graph, state)(x),
        *(spec, "f32[B,S,4]"),
        functions=[Block],
        compiled=True,
        rtol=1e-3,
        atol=1e-3,
    )
    assert calls(merged) == {"Block": 2}


def test_indices_are_written_into_the_body(check):
    order = np.array([2, 0, 1])

    @smelt.function
    def shuffled(x):
        return x[:, order]

    model = check(lambda x: shuffled(shuffled(x)), "f32[B,3]")
    assert calls(model) == {"shuffled": 2}
    assert [len(f.inputs) for f in model.functions.values()] == [1]


def test_keys_and_types_of_all_widths(check):
    @smelt.function
    def noisy(x, key):
        return x + jax.random.normal(key, x.shape, x.dtype)

    key = jax.random.key(3)
    model = check(lambda x: noisy(noisy(x, key), key), "f64[3]", x64=True)
    assert calls(model) == {"noisy": 2}
    check(lambda x: noisy(x, key), "f16[3]", rtol=1e-2)


def test_complex_numbers_inside_of_functions_and_between_them(check):
    @smelt.function
    def magnitude(x):
        return jnp.abs(jnp.fft.fft(x))

    @smelt.function
    def turned(z):
        return z * 1j

    model = check(lambda x: magnitude(magnitude(x)), "f32[B,4]", rtol=1e-3, atol=1e-4)
    assert calls(model) == {"magnitude": 2}
    pairs = check(lambda x: turned(turned(jax.lax.complex(x, x))).real, "f32[3]")
    assert calls(pairs) == {"turned": 2}
    (function,) = pairs.functions.values()
    assert [value.name for value in function.inputs] == ["z_0", "z_1"]


@pytest.mark.parametrize("shape", ["f32[]", "f32[0,3]", "f32[1]", "bf16[2]", "i8[3]"])
def test_any_input(shape):
    @smelt.function
    def same(x):
        return jnp.equal(x, -x)

    assert functions(trace(same, shape)) == ["same"]


def test_equal_traces_give_equal_models():
    from smelt.frontends.onnx import to_proto

    def made():
        return to_proto(trace(Stack(3, 4, nnx.Rngs(0)), "f32[B,S,4]", functions="repeated"))

    assert made() == made()
