"""Random numbers of an exported function are drawn by the operator of the original function."""

from __future__ import annotations

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import smelt

DRAWS = {
    "uniform": lambda k: jax.random.uniform(k, (3, 5)),
    "keys": lambda k: jax.random.split(k)[1],
    "folded": lambda k: jax.random.fold_in(k, 7),
    "many keys": lambda k: jax.vmap(lambda i: jax.random.fold_in(k, i))(jnp.arange(3)),
}
KEY = np.uint32([3, 9])


@pytest.mark.parametrize("name", DRAWS)
def test_a_random_draw_is_one_operator(name):
    given = export.export(jax.jit(DRAWS[name]))(jax.ShapeDtypeStruct((2,), jnp.uint32))
    model = smelt.trace(given)
    assert Counter(node.op_type for node in model.graph)["Threefry2x32"] == 1
    np.testing.assert_array_equal(smelt.compile(model)(KEY)[0], DRAWS[name](KEY))


def test_a_function_with_the_name_of_a_primitive_may_compute_something_else():
    def threefry2x32(a, b, c, d):
        return a ^ c, b ^ d

    def draw(k):
        return jnp.stack(jax.jit(threefry2x32)(k[0], k[1], k[1], k[0]))

    given = export.export(jax.jit(draw))(jax.ShapeDtypeStruct((2,), jnp.uint32))
    np.testing.assert_array_equal(smelt.compile(given)(KEY)[0], draw(KEY))


TYPED = {
    "a key": (lambda k, x: x + jax.random.normal(k, x.shape), ()),
    "a key out": (lambda k, x: (jax.random.split(k, 3)[1], x), ()),
    "many keys": (lambda k, x: jax.vmap(jax.random.uniform)(k) + x.sum(), (2,)),
    "a carried key": (
        lambda k, x: jax.lax.scan(lambda k, v: (jax.random.fold_in(k, 1), v), k, x)[0],
        (),
    ),
}


@pytest.mark.parametrize("name", TYPED)
def test_typed_keys_go_in_and_out(name):
    draw, shape = TYPED[name]
    keys = jax.random.split(jax.random.key(3), shape) if shape else jax.random.key(3)
    (size,) = export.symbolic_shape("B")
    structs = jax.typeof(keys), jax.ShapeDtypeStruct((size,), jnp.float32)
    run = smelt.compile(export.export(jax.jit(draw))(*structs))
    for length in (1, 4):
        x = np.arange(length, dtype=np.float32)
        expected = [
            jax.random.key_data(leaf) if jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) else leaf
            for leaf in jax.tree.leaves(draw(keys, x))
        ]
        for got, want in zip(run(jax.random.key_data(keys), x), expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5)
