"""equinox attention becomes one operator, or JAX traces it as usual."""

from __future__ import annotations

from collections import Counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from raised import raises_in_function

from smelt.compiler import optimize
from smelt.frontends.jax import trace


def operators(model):
    return Counter(node.op_type for node in model.graph)


def layer(**options):
    """Attention with weights that NumPy draws: JAX would compile for each of their shapes."""
    sizes = {"num_heads": 2, "query_size": 8, **options}
    shapes = eqx.filter_eval_shape(eqx.nn.MultiheadAttention, **sizes, key=jax.random.key(0))
    rng = np.random.default_rng(0)

    def draw(leaf):
        if not isinstance(leaf, jax.ShapeDtypeStruct):
            return leaf
        return jnp.asarray(rng.uniform(-0.5, 0.5, leaf.shape), leaf.dtype)

    return jax.tree.map(draw, shapes)


def triangle(rows, columns):
    return jnp.arange(rows)[:, None] >= jnp.arange(columns)


def test_heads_of_one_row_and_of_batches(check):
    attend = layer()
    assert operators(check(lambda x: attend(x, x, x), "f32[S,8]"))["Attention"] == 1
    mapped = jax.vmap(lambda x: attend(x, x, x))
    assert operators(check(mapped, "f32[B,S,8]"))["Attention"] == 1
    deep = operators(check(jax.vmap(mapped, 1), "f32[3,B,S,8]", compiled=True))
    assert deep["Attention"] == 0


def test_other_lengths_and_sizes(check):
    attend = layer(key_size=5, value_size=7, vo_size=3, qk_size=6)
    specs = ("f32[B,S,8]", "f32[B,T,5]", "f32[B,T,7]")
    assert operators(check(jax.vmap(attend), *specs))["Attention"] == 1


def masked(attend):
    return lambda x, mask: attend(x, x, x, mask=mask)


@pytest.mark.parametrize(
    ("axes", "spec"),
    [(None, "bool[5,5]"), (0, "bool[B,5,5]"), (None, "bool[2,5,5]"), (0, "bool[B,2,5,5]")],
    ids=["of all", "of a row", "of a head", "of a row and a head"],
)
def test_masks(check, axes, spec):
    """A row that sees no key is the average of all values."""
    fn = jax.vmap(masked(layer()), in_axes=(0, axes))
    assert operators(check(fn, "f32[B,5,8]", spec))["Softmax"] == 1


def test_causal_masks_of_any_length(check):
    def fn(x):
        return masked(layer())(x, triangle(*[x.shape[0]] * 2))

    model = check(jax.vmap(fn), "f32[B,S,8]")
    assert operators(model)["Softmax"] == 1
    assert operators(optimize(model))["Attention"] == 1


def test_weights_are_dropped_out_in_training_alone(check):
    attend = layer(dropout_p=0.5)
    still = eqx.nn.inference_mode(attend)
    assert operators(check(lambda x: still(x, x, x), "f32[5,8]"))["Attention"] == 1
    found = operators(check(lambda x: attend(x, x, x, inference=True), "f32[5,8]"))
    assert found["Attention"] == 1
    found = operators(check(lambda x: attend(x, x, x, key=jax.random.key(1)), "f32[5,8]"))
    assert found["Attention"] == 0
    with raises_in_function(RuntimeError, match="key"):
        trace(lambda x: attend(x, x, x), "f32[5,8]")


def test_single_nodes_replace_an_unsuitable_attention_operator(check):
    attend = layer()
    assert not operators(check(lambda x: attend(x, x, x), "f32[S,8]", opset=22))["Attention"]
    shorter = operators(check(lambda x: attend(x[1:], x, x), "f32[S,8]"))
    assert not shorter["Attention"]
    half = jax.tree.map(lambda w: w.astype("f2") if eqx.is_array(w) else w, attend)
    found = operators(check(lambda x: half(x, x, x), "f16[5,8]", rtol=1e-2, atol=1e-2))
    assert not found["Attention"]


def test_derivatives_and_batches_of_some_operands(check):
    attend = layer()

    def loss(x):
        return jnp.sum(jnp.sin(eqx.filter_jit(attend)(x, x, x)))

    check(jax.grad(loss), "f32[5,8]", rtol=1e-4, atol=1e-5)
    check(jax.vmap(lambda q, x: attend(q, x, x), in_axes=(0, None)), "f32[B,3,8]", "f32[5,8]")


def test_a_mask_that_does_not_fit_is_refused():
    mask = np.ones((3, 5), bool)
    with raises_in_function(ValueError, match="mask must have shape"):
        trace(lambda x: layer()(x, x, x, mask=mask), "f32[5,8]")
