"""Transformed functions convert like plain ones; prints and callbacks for debugging are left out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name
from jax.custom_batching import custom_vmap, sequential_vmap
from jax.experimental import io_callback

from smelt.errors import ErrorList, Unsupported
from smelt.frontends.jax import trace

W = jnp.linspace(-1, 1, 12).reshape(4, 3)


def mlp(x):
    return jnp.tanh(x @ W).sum(-1)


def loss(x):
    return (mlp(x) ** 2).sum()


@jax.custom_vjp
def clipped(x):
    return jnp.sin(x)


clipped.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.clip(g * 9 * jnp.cos(x), -1, 1),))


@jax.custom_jvp
def tripled(x):
    return jnp.sin(x) * x


tripled.defjvp(lambda xs, ts: (tripled(*xs), ts[0] * 3 * xs[0]))


@custom_vmap
def rowwise(x):
    return x * 2


@rowwise.def_vmap
def _(size, batched, x):
    return x * 3, True


def sine(x):
    return jax.pure_callback(np.sin, jax.ShapeDtypeStruct(x.shape, x.dtype), x)


SAVED = jax.checkpoint_policies.dots_saveable

TRANSFORMED = {
    "vmap": (jax.vmap(mlp), ["f32[B,4]"]),
    "vmap of vmap": (jax.vmap(jax.vmap(jnp.outer, (None, 0)), (0, None)), ["f32[B,4]", "f32[S,3]"]),
    "vmap over other axes": (jax.vmap(jnp.matmul, (1, None), 1), ["f32[4,B]", "f32[4,3]"]),
    "vmap of an index": (jax.vmap(lambda x, i: x[i]), ["f32[B,4]", "i32[B]"]),
    "grad": (jax.grad(loss), ["f32[B,4]"]),
    "value and grad": (jax.value_and_grad(loss), ["f32[B,4]"]),
    "grad of each row": (jax.vmap(jax.grad(loss)), ["f32[B,4]"]),
    "vjp": (lambda x, g: jax.vjp(mlp, x)[1](g), ["f32[B,4]", "f32[B]"]),
    "jvp": (lambda x, t: jax.jvp(mlp, (x,), (t,)), ["f32[B,4]", "f32[B,4]"]),
    "linearize": (lambda x, t: jax.linearize(mlp, x)[1](t), ["f32[B,4]", "f32[B,4]"]),
    "jacfwd": (jax.jacfwd(lambda x: jnp.sin(x) @ W), ["f32[4]"]),
    "jacrev": (jax.jacrev(lambda x: jnp.sin(x) @ W), ["f32[4]"]),
    "hessian": (jax.hessian(lambda x: mlp(jnp.sin(x))), ["f32[4]"]),
    "remat": (jax.grad(jax.remat(loss)), ["f32[B,4]"]),
    "checkpoint": (jax.checkpoint(mlp), ["f32[B,4]"]),
    "checkpoint with a policy": (jax.grad(jax.checkpoint(loss, policy=SAVED)), ["f32[B,4]"]),
    "checkpoint by name": (lambda x: checkpoint_name(x * 2, "twice"), ["f32[B,4]"]),
    "custom vjp": (clipped, ["f32[B]"]),
    "grad of custom vjp": (jax.grad(lambda x: clipped(x).sum()), ["f32[B]"]),
    "vmap of a custom vjp": (jax.vmap(jax.grad(clipped)), ["f32[B]"]),
    "custom jvp": (tripled, ["f32[B]"]),
    "grad of custom jvp": (jax.grad(lambda x: tripled(x).sum()), ["f32[B]"]),
    "jvp of custom jvp": (lambda x: jax.jvp(tripled, (x,), (x,)), ["f32[B]"]),
    "custom vmap": (rowwise, ["f32[B]"]),
    "vmap of custom vmap": (jax.vmap(rowwise), ["f32[B]"]),
    "vmap row by row": (jax.vmap(sequential_vmap(jnp.sin)), ["f32[B]"]),
    "stop gradient": (jax.grad(lambda x: (jax.lax.stop_gradient(x) * x).sum()), ["f32[B]"]),
    "linear transpose": (
        jax.linear_transpose(lambda x: x @ W, jax.ShapeDtypeStruct((2, 4), "f4")),
        ["f32[2,3]"],
    ),
    "composite": (jax.lax.composite(jnp.sin, name="my.sin"), ["f32[B]"]),
    "jit of jit": (jax.jit(jax.vmap(jax.jit(mlp))), ["f32[B,2,4]"]),
    "custom linear solve": (
        lambda b: jax.lax.custom_linear_solve(lambda v: 2 * v, b, lambda _, b: b / 2),
        ["f32[B]"],
    ),
    "a choice by platform": (
        lambda x: jax.lax.platform_dependent(x, tpu=jnp.cos, cpu=jnp.sin, default=jnp.tan),
        ["f32[B]"],
    ),
    "a default for all platforms": (
        lambda x: jax.lax.platform_dependent(x, tpu=sine, default=jnp.tan),
        ["f32[3]"],
    ),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_transformed_functions(check, name):
    fn, specs = TRANSFORMED[name]
    check(fn, *specs)


def shown(x):
    jax.debug.print("x is {}", jnp.cos(x))
    jax.debug.callback(lambda _: None, x, ordered=True)
    return x + 1


def shown_in_a_branch(x):
    return jax.lax.cond(x[0] > 0, shown, lambda x: x - 1, x)


def shown_in_a_scan(x):
    return jax.lax.scan(lambda c, a: (c + shown(a), c), 0.0, x)


def shown_in_a_loop(x):
    return jax.lax.while_loop(lambda c: c.sum() < 10, shown, jnp.abs(x))


def shown_and_unused(x):
    shown(jnp.sin(x))
    jax.jit(shown)(x)
    return x * 2


@pytest.mark.parametrize(
    "fn",
    [
        shown,
        jax.jit(shown),
        jax.grad(lambda x: shown(x).sum()),
        shown_in_a_branch,
        shown_in_a_scan,
        shown_in_a_loop,
        shown_and_unused,
    ],
)
def test_debugging_is_left_out(check, fn):
    check(fn, "f32[3]")


def test_nothing_is_computed_only_to_be_printed():
    assert [node.op_type for node in trace(shown, "f32[B]").graph] == ["Add"]
    assert [node.op_type for node in trace(shown_and_unused, "f32[B]").graph] == ["Mul"]


def stored(x):
    io_callback(print, None, x)
    return x


@pytest.mark.parametrize(("fn", "name"), [(sine, "pure_callback"), (stored, "io_callback")])
def test_callbacks_are_refused_with_their_line(fn, name):
    with pytest.raises(ErrorList) as caught:
        trace(lambda x: jax.jit(fn)(x) + 1, "f32[3]")
    (error,) = caught.value.errors
    assert error.code == "E101"
    assert name in error.what
    assert "test_calls.py" in error.at[0]
    assert f"in {fn.__name__}" in error.at[0]
    assert "a model cannot run Python" in error.why


def test_a_callback_without_readers_is_left_out(check):
    check(lambda x: (sine(x), x * 2)[1], "f32[3]")


def test_branches_without_one_for_a_cpu_are_refused():
    fn = lambda x: jax.lax.platform_dependent(x, tpu=jnp.cos, cuda=jnp.sin)  # noqa: E731
    with pytest.raises(Unsupported, match="platform_index") as caught:
        trace(fn, "f32[3]")
    assert "none of its alternatives is for a CPU" in caught.value.why
