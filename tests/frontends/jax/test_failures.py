"""Errors of the traced function name its line and its own message."""

from __future__ import annotations

import contextlib
import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen, nnx

from smelt.errors import SmeltError, Unsupported, UsageError
from smelt.frontends.jax import trace
from smelt.frontends.jax.plugins.layers import layer_norm

linear = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
norm = nnx.LayerNorm(4, rngs=nnx.Rngs(0))


def wrong_shape(x):
    return x @ jnp.ones((3, 3))


def raising(x):
    raise RuntimeError("out of luck")


def chosen_in_python(x):
    if x.sum() > 0:
        return x
    return -x


def chosen_in_a_branch(x):
    return jax.lax.cond(True, chosen_in_python, chosen_in_python, x)


def array_of_numpy(x):
    return np.asarray(x) + 1


def index_of_a_list(x):
    return [1.0, 2.0][x[0, 0].astype(int)]


def boolean_index(x):
    return x[x > 0]


def wrong_in_a_library(x):
    return linear(jnp.concatenate([x, x], -1))


def too_many_arguments_for_a_layer(x):
    return norm(x, 1, 2, 3)


def wrong_in_vmap(x):
    return jax.vmap(lambda row: row @ jnp.ones((3, 3)))(x)


def wrong_under_pythons_library(x):
    with contextlib.nullcontext():
        return functools.reduce(jnp.matmul, [x, x])


def endless(x):
    return endless(x)


CASES = {
    wrong_shape: (TypeError, 1, "contracting dimensions"),
    raising: (RuntimeError, 1, "out of luck"),
    chosen_in_python: (jax.errors.TracerBoolConversionError, 1, "depends on the value of x"),
    array_of_numpy: (jax.errors.TracerArrayConversionError, 1, "depends on the value of x"),
    index_of_a_list: (jax.errors.TracerIntegerConversionError, 1, "depends on the value of x"),
    boolean_index: (jax.errors.NonConcreteBooleanIndexError, 1, "must be concrete"),
    wrong_in_a_library: (TypeError, 1, "contracting dimensions"),
    too_many_arguments_for_a_layer: (TypeError, 1, "positional arguments"),
    wrong_in_vmap: (TypeError, 1, "contracting dimensions"),
    wrong_under_pythons_library: (TypeError, 2, "contracting dimensions"),
    endless: (RecursionError, 1, "recursion"),
}


def failure(fn, *specs, **options):
    with pytest.raises(UsageError) as caught:
        trace(fn, *specs, **options)
    assert caught.value.code == "E113"
    return caught.value


@pytest.mark.parametrize("fn", CASES, ids=lambda fn: fn.__name__)
def test_the_line_and_the_message_are_the_users(fn):
    kind, line, says = CASES[fn]
    error = failure(fn, "f32[2,4]")
    assert error.what == f"your function raised {kind.__name__}"
    at = f"{fn.__code__.co_firstlineno + line} in "
    assert error.at[0].startswith("tests/frontends/jax/test_failures.py:")
    assert at in error.at[0]
    assert says in error.why
    assert isinstance(error.__cause__, kind)
    assert "smelt/" not in error.why


def test_an_error_under_transformations_names_the_inner_line():
    error = failure(jax.jit(chosen_in_a_branch), "f32[2,4]")
    assert f":{chosen_in_python.__code__.co_firstlineno + 1} in chosen_in_python" in error.at[0]


@pytest.mark.parametrize("fn", [chosen_in_python, array_of_numpy, index_of_a_list, boolean_index])
def test_the_advice_of_jax_is_given_where_there_is_some(fn):
    error = failure(fn, "f32[2,4]")
    assert f"errors.html#jax.errors.{type(error.__cause__).__name__}" in error.fix
    assert ";" in error.fix  # and one of ours


def counting_to_a_dim(x):
    for step in range(x.shape[0]):
        x = x + step
    return x


def test_a_python_range_over_a_symbolic_dim_is_refused():
    with pytest.raises(Unsupported) as caught:
        trace(counting_to_a_dim, "f32[B,4]")
    error = caught.value
    assert error.code == "E112"
    assert "fori_loop" in error.fix
    assert "as a number" in error.fix
    trace(counting_to_a_dim, "f32[2,4]")


@pytest.mark.parametrize("layer", [linear, eqx.nn.LayerNorm(8)])
def test_a_layer_that_is_the_whole_function_has_no_line_to_name(layer):
    assert failure(layer, "f32[3,5]").at == ()


@pytest.mark.parametrize(
    ("result", "says"),
    [("text", "a str: 'text'"), ({"a": object}, "a type"), ((), "nothing"), (None, "nothing")],
)
def test_results_other_than_arrays_are_refused(result, says):
    def fn(x):
        return result

    error = failure(fn, "f32[2]")
    assert error.what.startswith(f"your function returned {says}")
    assert error.at == (f"tests/frontends/jax/test_failures.py:{fn.__code__.co_firstlineno} in fn",)


def test_a_long_message_is_cut():
    def fn(x):
        raise ValueError("\n".join(f"line {i}" for i in range(100)))

    assert failure(fn, "f32[2]").why == "; ".join([*(f"line {i}" for i in range(6)), "..."])


def test_only_inconclusive_size_comparisons_are_e112():
    def fn(x):
        raise ValueError("the vote is inconclusive")

    assert failure(fn, "f32[2]").why == "the vote is inconclusive"


def test_an_error_in_smelt_itself_is_not_the_users(monkeypatch):
    monkeypatch.setattr(layer_norm, "is_usual_epsilon", None)
    with pytest.raises(TypeError, match="not callable"):
        trace(norm, "f32[3,4]")


def test_errors_under_open_sizes_advise_working_numbers():
    def fn(x):
        return jnp.arange(0.1, x.shape[0])

    error = failure(fn, "f32[N,M]")
    assert "give M or N as a number" in error.fix
    for unrelated in (raising, wrong_shape, boolean_index):
        assert "as a number" not in failure(unrelated, "f32[N,4]").fix


LINEN = linen.Dense(3)

MISUSES = {
    "unbound linen module": (LINEN, ("f32[B,4]",), "functools.partial(module.apply, variables)"),
    "linen apply alone": (LINEN.apply, ("f32[B,4]",), "functools.partial(module.apply, variables)"),
    "tracer in reps": (lambda x, n: jnp.tile(x, (n, 1)), ("f32[B,4]", "i32[]"), "static"),
    "tracer in a shape": (lambda x, n: x.reshape(n, -1), ("f32[B,4]", "i32[]"), "static"),
    "compiled": (jax.jit(jnp.sin).lower(1.0).compile(), ("f32[]",), "function that was jitted"),
    "lowered": (jax.jit(jnp.sin).lower(1.0), ("f32[]",), "function that was jitted"),
    "jaxpr": (jax.make_jaxpr(jnp.sin)(1.0), ("f32[]",), "jaxpr_as_fun"),
    "bare shape": (jnp.sin, (("B", 4),), "write 'f32[B,4]'"),
    "list of bare shapes": (jnp.sin, ([("B", 4)],), "write 'f32[B,4]'"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_a_common_misuse_names_the_right_use(name):
    fn, specs, says = MISUSES[name]
    with pytest.raises(UsageError) as caught:
        trace(fn, *specs)
    assert says in caught.value.fix
    assert "as a number" not in caught.value.fix


def test_an_associative_scan_that_was_imported_by_name_says_how_to_call_it():
    scan = jax.lax.associative_scan
    with pytest.raises(SmeltError, match="E112") as caught:
        trace(lambda x: scan(jnp.add, x), "f32[N]")
    assert "jax.lax.associative_scan" in caught.value.fix


def test_arrays_of_another_trace():
    kept = []

    def fn(x):
        if not kept:
            kept.append(jnp.full(3, 2.0))
        return x + kept[0]

    trace(fn, "f32[3]")
    with pytest.raises(UsageError, match=r"array of another trace, float32\[3\]") as raised:
        trace(fn, "f32[2,3]")
    assert raised.value.code == "E113"


def test_errors_about_quotients_advise_multiples():
    """Layers that halve an image and double it again leave such quotients."""

    def fn(x):
        halves = x[: x.shape[0] // 2 // 3]
        return jnp.concatenate([x, jnp.repeat(halves, 6, 0)], 1)

    with pytest.raises(UsageError, match=r"write the dims as multiples: 6\*N;"):
        trace(fn, "f32[N,2]")
    trace(fn, "f32[6*N,2]")
