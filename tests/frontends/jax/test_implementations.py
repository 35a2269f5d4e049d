"""Library primitives are replaced by their implementations; run-time checks are left out."""

from __future__ import annotations

import warnings

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental import sparse
from jax.interpreters import mlir

from smelt.errors import SmeltError
from smelt.frontends.jax import compat, trace


def primitive(name, implementation):
    """A primitive of a library, of the type of its first operand."""
    made = compat.Primitive(name)
    made.def_abstract_eval(lambda x, *rest, **params: compat.ShapedArray(x.shape, x.dtype))
    made.def_impl(implementation)
    mlir.register_lowering(made, mlir.lower_fun(implementation, multiple_results=False))
    return made


doubled = primitive("test_doubled", lambda x, times=2: x * times)
nested = primitive("test_nested", lambda x: doubled.bind(x, times=3) + 1)
untraceable = primitive("test_untraceable", lambda x: np.asarray(x) + 1)

CASES = {
    "with parameters": lambda x: doubled.bind(x, times=4),
    "of one another": nested.bind,
    "in a loop": lambda x: jax.lax.fori_loop(0, 3, lambda i, c: doubled.bind(c, times=2), x),
    "in a scan": lambda x: jax.lax.scan(lambda c, row: (c + 1, nested.bind(row)), 0.0, x)[1],
    "in a branch": lambda x: jax.lax.cond(x.sum() > 0, nested.bind, lambda v: v, x),
    "in a jit": jax.jit(lambda x: doubled.bind(x, times=5)),
    "of equinox": lambda x: x * eqxi.unvmap_any(x > 0) + eqxi.nonbatchable(x),
    "of equinox, on batches": jax.vmap(lambda x: jnp.where(eqxi.unvmap_any(x > 0), x, -x)),
}


@pytest.mark.parametrize("name", CASES)
def test_implementations_of_primitives_are_inlined(check, name):
    check(CASES[name], "f32[S,4]", sizes=({"S": 1}, {"S": 3}))


def test_keys_stay_keys_beside_what_is_inlined(check):
    def fn(k):
        key, other = jax.random.split(jax.random.wrap_key_data(k))
        return eqxi.nonbatchable(jax.random.bits(key, (3,))), jax.random.key_data(other)

    check(fn, "u32[2]")


def test_untraceable_primitives_are_refused_by_name():
    with pytest.raises(SmeltError, match="primitive 'test_untraceable' has no ONNX lowering"):
        trace(untraceable.bind, "f32[3]")


def test_a_run_time_check_is_left_out_with_a_warning(check):
    def root(x):
        return jnp.sqrt(eqx.error_if(x, x < 0, "x must not be negative"))

    with pytest.warns(UserWarning, match="left out of the model: x must not be negative"):
        trace(root, "f32[3]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(lambda x: root(jnp.abs(x)), "f32[S]", sizes=({"S": 3},))
    with pytest.raises(jax.errors.JaxRuntimeError, match="must not be negative"):
        jax.jit(root)(-jnp.ones(3)).block_until_ready()


def test_a_strict_trace_leaves_nothing_out():
    def checked(x):
        return eqx.error_if(x, x.sum() < 0, "x must not be negative")

    @jax.jit
    def printed(x):
        jax.debug.print("{}", x)
        return lax.cond(x[0] > 0, lambda y: (jax.debug.callback(print, y), y)[1], jnp.sin, x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trace(checked, "f32[3]")  # What JAX keeps of this trace is not that of a strict one.
    with pytest.raises(SmeltError, match="E101") as caught:
        trace(checked, "f32[3]", strict=True)
    assert "unless the trace is strict" in str(caught.value)
    assert "test_implementations.py" in str(caught.value)
    with pytest.raises(SmeltError, match="the trace is strict") as caught:
        trace(printed, "f32[3]", strict=True)
    assert str(caught.value).count("test_implementations.py") == 2
    assert trace(printed, "f32[3]").graph.outputs[0].shape == [3]
    assert trace(jnp.sin, "f32[3]", strict=True).graph.num_nodes() == 1


def test_a_check_that_fails_while_tracing_raises():
    with pytest.raises(SmeltError, match="of a wrong size"):
        trace(lambda x: eqx.error_if(x, x.shape[0] == 3, "of a wrong size"), "f32[3]")


def test_sparse_matrices(check):
    def fn(values, rows, x):
        places = jnp.stack((rows % 4, rows % 3), -1)
        matrix = sparse.BCOO((values, places), shape=(4, 3))
        return matrix @ x, matrix.T.todense(), (2 * matrix).sum(0).todense()

    check(fn, "f32[E]", "i32[E]", "f32[3,N]", sizes=({"E": 1, "N": 2}, {"E": 6, "N": 5}))
