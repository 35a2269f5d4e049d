"""Inputs by position and keyword, and static values, which are not inputs."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import pytest

from smelt.errors import UsageError
from smelt.frontends.jax import trace


def inputs_of(model):
    return [value.name for value in model.graph.inputs]


def outputs_of(model):
    return [value.name for value in model.graph.outputs]


def scaled(x, *more, scale, shift=1.0, **rest):
    return {"y": x * scale + shift, "sum": sum(more), **rest}


def test_keyword_inputs_are_named_after_their_parameters_and_keep_their_order(check):
    kwargs = {"shift": "f32[]", "scale": {"b": "f32[3]", "a": "f32[3]"}, "z": "i32[2]"}

    def fn(x, *, scale, shift, **rest):
        return x * scale["a"] - scale["b"] / (1 + shift * shift), rest

    model = check(fn, "f32[B,3]", kwargs=kwargs)
    assert inputs_of(model) == ["x", "shift", "scale_a", "scale_b", "z"]
    assert outputs_of(model) == ["out_0", "out_1_z"]


def test_a_positional_parameter_may_be_given_by_keyword():
    assert inputs_of(trace(lambda x, y: x - y, "f32[2]", kwargs={"y": "f32[2]"})) == ["x", "y"]
    assert inputs_of(trace(lambda x, y: x - y, kwargs={"y": "f32[2]", "x": "f32[2]"})) == ["y", "x"]


def test_variadic_positional_and_keyword_inputs_together():
    model = trace(scaled, "f32[2]", "f32[]", "f32[]", kwargs={"scale": "f32[]", "extra": "i8[1]"})
    assert inputs_of(model) == ["x", "more_0", "more_1", "scale", "extra"]
    assert outputs_of(model) == ["out_extra", "out_sum", "out_y"]


@pytest.mark.parametrize("train", [False, True])
def test_static_values_reach_the_function_and_are_not_inputs(train):
    def fn(x, mode, *, train, name=None):
        assert name is None
        return jnp.sin(x) if train and mode == "wave" else jnp.abs(x)

    model = trace(fn, "f32[2]", static={"mode": "wave", "train": train, "name": None})
    assert inputs_of(model) == ["x"]
    assert [node.op_type for node in model.graph] == ["Sin" if train else "Abs"]


def test_static_values_may_be_anything():
    def fn(x, act, axes, *, shape):
        return act(x).sum(axes).reshape(shape)

    static = {"act": jax.nn.relu, "axes": (0, 2), "shape": [-1]}
    assert inputs_of(trace(fn, "f32[2,B,3]", static=static)) == ["x"]


def test_numbers_by_position_are_inputs_and_none_holds_none():
    model = trace(lambda x, n, flag, nothing: x * n + flag, "f32[2]", 3, True, None)
    types = [f"{v.name} {v.dtype.name}{list(v.shape)}" for v in model.graph.inputs]
    assert types == ["x FLOAT[2]", "n INT32[]", "flag BOOL[]"]


@pytest.mark.parametrize("leaf", ["silu", object(), jax.nn.relu])
def test_the_error_for_other_arguments_than_specs_proposes_static(leaf):
    with pytest.raises(UsageError) as caught:
        trace(lambda x, act: x, "f32[2]", {"act": leaf})
    assert caught.value.code == "E104"
    assert "static={...}" in caught.value.fix


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"static": {"y": 1}, "kwargs": {"y": "f32[]"}}, "'y' is both an input and a static value"),
        ({"static": {"x": 1}}, "multiple values for argument 'x'"),
        ({"kwargs": {"z": "f32[]"}}, "missing a required argument: 'y'"),
        ({"kwargs": {"y": "f32[]", "z": "f32[]"}}, "unexpected keyword argument 'z'"),
        ({"kwargs": {3: "f32[]"}}, "3 is not a name of a parameter"),
    ],
)
def test_arguments_that_the_function_does_not_take_are_refused(given, says):
    with pytest.raises(UsageError, match=says) as caught:
        trace(lambda x, y: x + y, "f32[2]", **given)
    assert caught.value.code == "E109"


def test_a_function_may_accept_more_than_its_signature_states():
    def core(key, x):
        return x + key

    @functools.wraps(core)
    def fn(x):
        return core(1.0, x)

    assert inputs_of(trace(fn, "f32[2]")) == ["x0"]
