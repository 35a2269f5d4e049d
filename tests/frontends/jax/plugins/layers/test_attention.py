"""``jax.nn.dot_product_attention`` becomes one operator, or JAX traces it as usual."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from raised import raises_in_function

from smelt.compiler import optimize
from smelt.frontends.jax import trace

attention = jax.nn.dot_product_attention
ROWS = ("f32[B,S,4,8]", "f32[B,T,4,8]", "f32[B,T,4,8]")


def call(*operands, **options):
    # Looked up anew, as the code of a user does it.
    return jax.nn.dot_product_attention(*operands, **options)


def operators(model):
    return Counter(node.op_type for node in model.graph)


def causal(mask):
    return lambda q, k, v: call(q, k, v, mask=mask(q.shape[1]))


def triangle(size):
    rows = jnp.arange(size)
    return (rows[:, None] >= rows)[None, None]


def some_rows_see_nothing(size):
    rows = jnp.arange(size)
    return ((rows[:, None] > rows) & (rows[:, None] != 3))[None, None]


def test_any_lengths_and_scales(check):
    assert operators(check(call, *ROWS)) == {"Attention": 1, "Reshape": 4}
    found = operators(check(lambda *rows: call(*rows, scale=2), *ROWS))
    assert found["Attention"] == 1


def test_causal(check):
    """A pass recognizes the causal mask."""
    spec = "f32[B,S,4,8]"
    model = check(lambda q, k, v: call(q, k, v, is_causal=True), spec, spec, spec)
    assert operators(model)["Softmax"] == 1
    (node,) = (node for node in optimize(model).graph if node.op_type == "Attention")
    assert node.attributes["is_causal"].value == 1


def test_causal_and_masked_and_of_other_lengths(check):
    both = lambda q: call(q, q, q, is_causal=True, mask=some_rows_see_nothing(5))  # noqa: E731
    assert operators(check(both, "f32[B,5,4,8]"))["Softmax"] == 1
    longer = operators(check(lambda q: call(q[:, 2:], q, q, is_causal=True), "f32[2,5,4,8]"))
    assert longer["Softmax"] == 1


@pytest.mark.parametrize("hidden", [np.nan, np.inf, -np.inf])
def test_a_hidden_score_may_be_anything(check, hidden):
    """A masked key may be NaN or infinite; a masked value may not, because it is multiplied by 0."""
    rng = np.random.default_rng(0)
    q, k, v = (np.abs(rng.normal(size=(1, 5, 2, 4))).astype(np.float32) for _ in range(3))
    k[:, 4] = hidden
    spec = "f32[1,5,2,4]"
    check(lambda q, k, v: call(q, k, v, is_causal=True), *[spec] * 3, inputs=[[q, k, v]])
    check(causal(triangle), *[spec] * 3, inputs=[[q, k, v]])


@pytest.mark.parametrize("mask", [triangle, some_rows_see_nothing])
def test_masks(check, mask):
    """A row that sees no key is the average of all values."""
    spec = "f32[B,S,4,8]"
    model = check(causal(mask), spec, spec, spec)
    assert operators(model)["Softmax"] == 1
    assert operators(optimize(model))["Attention"] == 1


@pytest.mark.parametrize("shape", [(2, 4, 5, 5), (1, 4, 5, 5), (2, 1, 5, 5), (1, 1, 1, 5)])
def test_a_mask_for_each_head_or_row(check, shape):
    mask = np.random.default_rng(0).integers(0, 2, shape).astype(bool)
    found = operators(check(lambda q: call(q, q, q, mask=jnp.asarray(mask)), "f32[2,5,4,8]"))
    assert found["Softmax"] == 1


OTHERS = {
    "a bias": (lambda q: call(q, q, q, bias=jnp.ones((1, 1, 5, 5))), "f32[2,5,4,8]"),
    "half": (lambda q: call(q, q, q), "f16[2,5,4,8]"),
    "one row": (lambda q: call(q, q, q), "f32[5,4,8]"),
    "grouped": (lambda q: call(q, q[:, :, :2], q[:, :, :2]), "f32[2,5,4,8]"),
    "a window": (lambda q: call(q, q, q, local_window_size=1), "f32[2,5,4,8]"),
    "lengths": (lambda q: call(q, q, q, key_value_seq_lengths=jnp.array([2, 5])), "f32[2,5,4,8]"),
    "no scale": (lambda q: call(q, q, q, scale=0.0), "f32[2,5,4,8]"),
    "a scale below zero": (lambda q: call(q, q, q, scale=-1.0), "f32[2,5,4,8]"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_attention_beyond_the_operator_is_not_replaced(check, name):
    fn, spec = OTHERS[name]
    # JAX refuses to compile the product in half precision for a CPU inside of jit.
    compiled = name != "half"
    found = operators(check(fn, spec, rtol=2e-3, atol=2e-3, compiled=compiled))
    assert found["Softmax"] == 0


def test_single_nodes_replace_a_missing_attention_operator(check):
    assert operators(check(call, *ROWS, opset=22))["Attention"] == 0
    found = operators(check(lambda q: call(q[:, 1:], q, q), "f32[B,S,4,8]"))
    assert found["Attention"] == 0


def test_derivatives_and_batches(check):
    def loss(q):
        return jnp.sum(jnp.sin(jax.jit(call)(q, q, q)))

    check(jax.grad(loss), "f32[2,3,2,4]", rtol=1e-4, atol=1e-5)
    check(jax.vmap(lambda q: call(q, q, q), in_axes=1, out_axes=1), "f32[2,3,5,2,4]")


def test_a_scan_may_attend(check):
    def fn(x):
        return jax.lax.scan(lambda c, row: (c, call(row, c, c)), x[0], x)[1]

    check(fn, "f32[3,B,5,2,4]")


def test_flax_attention_is_one_operator(check):
    layer = nnx.MultiHeadAttention(4, 16, decode=False, deterministic=True, rngs=nnx.Rngs(0))

    def attend(x):
        mask = nnx.make_causal_mask(jnp.ones(x.shape[:2]))
        return layer(x, mask=mask)

    assert operators(optimize(check(attend, "f32[B,S,16]")))["Attention"] == 1


def test_shapes_that_do_not_fit_are_refused():
    with raises_in_function(ValueError, match="should be"):
        trace(lambda q, k: call(q, k, k), "f32[2,5,4,8]", "f32[3,5,4,8]")


def test_the_function_is_what_it_was():
    trace(call, *ROWS)
    assert jax.nn.dot_product_attention is attention
