"""Typed PRNG keys inside a traced function become integer arrays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
import pytest
from jax import lax, random

import smelt
from smelt.errors import ErrorList
from smelt.frontends.jax import compat, trace
from smelt.frontends.jax.keys import without_keys

KEYS = [[np.array(key, np.uint32)] for key in ((0, 0), (7, 42), (0xFFFFFFFF, 0x80000001))]
SPEC = "u32[2]"


def typed(key):
    return random.wrap_key_data(key)


def test_a_jaxpr_without_keys_is_left_alone():
    closed = jax.make_jaxpr(lambda x: jnp.sin(x) + 1)(1.0)
    assert without_keys(closed) is closed


def test_conversion_of_keys_keeps_captured_arrays():
    table = jnp.arange(1000.0)

    def fn(k, x):
        return random.normal(random.fold_in(typed(k), 3), x.shape) + table[:3]

    closed = jax.make_jaxpr(fn)(jnp.zeros(2, jnp.uint32), jnp.ones(3))
    plain = without_keys(closed)
    assert "key<" not in str(plain.jaxpr)
    assert [v.aval for v in plain.jaxpr.invars] == [v.aval for v in closed.jaxpr.invars]
    assert [v.aval for v in plain.jaxpr.outvars] == [v.aval for v in closed.jaxpr.outvars]
    assert all(any(c is mine for mine in plain.consts) for c in closed.consts)


def test_raw_and_typed_keys_made_split_and_folded(check):
    check(lambda k: random.key_data(random.split(typed(k), (2, 3))), SPEC, inputs=KEYS)
    check(lambda k: (random.split(k), random.fold_in(k, 9)), SPEC, inputs=KEYS)
    check(lambda k: random.key_data(random.clone(typed(k))), SPEC, inputs=KEYS)
    check(
        lambda s: (random.PRNGKey(s), random.key_data(random.key(s))), "i32[]", inputs=[[-7], [9]]
    )
    check(lambda s: random.key_data(random.key(s)), "i64[]", inputs=[[-(2**40)], [2**40]], x64=True)
    check(lambda: random.bits(random.key(2**31 - 1), (3,)), inputs=[[]])


def test_batches_of_keys(check):
    def draw(k):
        keys = random.split(typed(k), 4)
        steps = jnp.arange(4, dtype=jnp.uint32)
        folded = jax.vmap(random.fold_in)(keys, steps)
        one = jax.vmap(lambda step: random.bits(random.fold_in(typed(k), step), (2,)))(steps)
        return jax.vmap(lambda key: random.bits(key, (3,)))(folded), one

    check(draw, SPEC, inputs=KEYS)
    check(jax.vmap(lambda k: random.uniform(k, (3,))), "u32[B,2]")


MOVES = {
    "index": lambda keys: keys[1],
    "slice": lambda keys: keys[1:3],
    "reverse": lambda keys: keys[::-1],
    "reshape": lambda keys: keys.reshape(2, 2),
    "transpose": lambda keys: keys.reshape(2, 2).T,
    "concatenate": lambda keys: jnp.concatenate([keys, keys[:1]]),
    "stack": lambda keys: jnp.stack([keys[0], keys[3]]),
    "broadcast": lambda keys: jnp.broadcast_to(keys[0], (2, 3)),
    "expand": lambda keys: keys[:, None],
    "gather": lambda keys: keys[jnp.array([3, 0, 0])],
    "dynamic_slice": lambda keys: lax.dynamic_slice(keys, (jnp.int32(2),), (2,)),
    "update": lambda keys: keys.at[2].set(keys[0]),
    "where": lambda keys: jnp.where(jnp.array([True, False, True, False]), keys, keys[::-1]),
}


@pytest.mark.parametrize("name", MOVES)
def test_keys_are_moved_as_their_integers(check, name):
    fn = lambda k: random.key_data(MOVES[name](random.split(typed(k), 4)))  # noqa: E731
    check(fn, SPEC, inputs=KEYS)


def test_keys_are_compared(check):
    def fn(k):
        keys = random.split(typed(k), 3)
        return keys == keys[1], keys != keys[::-1]

    check(fn, SPEC, inputs=KEYS)


def test_keys_through_control_flow(check):
    def scanned(k):
        def step(key, _):
            key, sub = random.split(key)
            return key, random.bits(sub, (2,))

        key, drawn = lax.scan(step, typed(k), length=3)
        return random.key_data(key), drawn

    def over_keys(k):
        return lax.map(lambda key: random.bits(key, (2,)), random.split(typed(k), 3))

    def looped(k):
        last = lax.fori_loop(0, 4, lambda i, key: random.fold_in(key, i), typed(k))
        return random.key_data(last)

    def chosen(k):
        key = typed(k)
        return lax.cond(k[1] > 9, random.bits, lambda q: random.bits(q) + 1, key)

    for fn in (scanned, over_keys, looped, chosen):
        check(fn, SPEC, inputs=KEYS)


def test_keys_through_calls(check):
    @jax.jit
    def inner(key):
        return random.bits(key, (3,))

    @jax.custom_jvp
    def custom(key, x):
        return x + random.uniform(key, x.shape)

    @jax.custom_vjp
    def backward(key, x):
        return x * random.uniform(key, x.shape)

    custom.defjvp(lambda primals, tangents: (custom(*primals), tangents[1]))
    backward.defvjp(lambda key, x: (backward(key, x), x), lambda x, g: (None, g))

    def fn(k, x):
        key = typed(k)
        again = jax.checkpoint(lambda q, y: custom(q, jnp.sin(y)))(key, x)
        once, twice = inner(key), inner(random.fold_in(key, 1))
        return once, twice, custom(key, x), again, backward(key, x)

    check(fn, SPEC, "f32[3]")


def test_a_key_that_is_a_constant(check):
    key, keys = random.key(5), random.split(random.key(6), 3)
    check(lambda x: x + random.uniform(key, x.shape), "f32[4]")
    check(lambda i: random.bits(keys[i], (2,)), "i32[]", inputs=[[0], [2]])


def test_names_and_lines_stay():
    from smelt.ir.provenance import origin_of

    @jax.jit
    def noise(k):
        with jax.named_scope("drawing"):
            return random.bits(typed(k), (3,))

    model = trace(noise, SPEC)
    origins = [str(origin_of(node)) for node in model.graph if node.op_type == "Threefry2x32"]
    assert len(origins) == 1
    assert "test_keys.py" in origins[0]
    assert "drawing" in origins[0]


def test_other_primitives_on_keys_are_refused():
    primitive = compat.Primitive("test_count_keys")
    primitive.def_abstract_eval(lambda x: compat.ShapedArray((), np.dtype(np.int32)))
    with pytest.raises(ErrorList, match="E102") as caught:
        trace(lambda k: primitive.bind(typed(k)), SPEC)
    assert "test_keys.py" in str(caught.value)


def drawn(key, x):
    """Return noise drawn with one half of a split key, and the other half."""
    here, later = jax.random.split(key)
    return x + jax.random.normal(here, x.shape), later


@pytest.mark.parametrize(
    "spec", ["key[]", jax.random.key(3), jax.ShapeDtypeStruct((), jax.random.key(0).dtype)]
)
def test_keys_at_the_interface_are_their_integers(spec):
    model = trace(drawn, spec, "f32[3]")
    key = model.graph.inputs[0]
    assert (key.dtype, key.shape) == (ir.DataType.UINT32, (2,))
    assert "jax.random.key_data" in key.doc_string
    assert model.graph.outputs[1].dtype == ir.DataType.UINT32
    x = np.ones(3, np.float32)
    given = jax.random.key(11)
    noisy, later = smelt.compile(model)(np.asarray(jax.random.key_data(given)), x)
    expected = drawn(given, x)
    np.testing.assert_allclose(noisy, expected[0], rtol=1e-5)
    np.testing.assert_array_equal(later, jax.random.key_data(expected[1]))


def test_many_keys_have_a_symbolic_number():
    model = trace(jax.vmap(jax.random.bits), "key[B]")
    assert [str(dim) for dim in model.graph.inputs[0].shape] == ["B", "2"]
    keys = jax.random.split(jax.random.key(0), 5)
    (bits,) = smelt.compile(model)(np.asarray(jax.random.key_data(keys)))
    np.testing.assert_array_equal(bits, jax.vmap(jax.random.bits)(keys))
