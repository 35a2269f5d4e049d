"""The option ``functions``: classes, patterns of class names, and "repeated"."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from smelt.errors import UsageError
from smelt.frontends.jax import trace
from smelt.spans import recording


class Attention(nnx.Module):
    def __init__(self, rngs):
        self.query = nnx.Linear(4, 4, rngs=rngs)

    def __call__(self, x):
        return nnx.softmax(self.query(x))


class EncoderBlock(nnx.Module):
    def __init__(self, rngs):
        self.attention = Attention(rngs)
        self.out = nnx.Linear(4, 4, rngs=rngs)

    def __call__(self, x):
        return x + self.out(self.attention(x))


class Encoder(nnx.Module):
    def __init__(self, rngs):
        self.embed = EncoderBlock(rngs)
        self.blocks = nnx.List([EncoderBlock(rngs) for _ in range(3)])
        self.head = Attention(rngs)

    def __call__(self, x):
        x = self.embed(x[..., :4])
        for block in self.blocks:
            x = block(x)
        return self.head(x.sum(0))


@pytest.fixture(scope="module")
def encoder():
    return Encoder(nnx.Rngs(0))


def names(model):
    return [function.name for function in model.functions.values()]


def test_classes(encoder):
    assert names(trace(encoder, "f32[B,6]", functions=[Attention])) == ["Attention", "Attention_2"]
    both = trace(encoder, "f32[B,6]", functions=[Attention, EncoderBlock])
    assert names(both) == ["Attention", "EncoderBlock", "Attention_2"]


@pytest.mark.parametrize("pattern", ["EncoderBlock", "Encoder?*", "*test_selection.EncoderBlock"])
def test_patterns_of_names(encoder, pattern):
    assert names(trace(encoder, "f32[B,6]", functions=[pattern])) == ["EncoderBlock"]
    assert names(trace(encoder, "f32[B,6]", functions=pattern)) == ["EncoderBlock"]


def test_repeated_modules_that_hold_modules(check, encoder):
    model = check(encoder, "f32[B,6]", functions="repeated", rtol=1e-4)
    assert names(model) == ["EncoderBlock"]
    assert [node.op_type for node in model.graph].count("EncoderBlock") == 4


def test_functions_called_once_are_inlined_with_weights_and_shapes(check, encoder):
    """A function with one call is inlined."""
    with recording() as recorder:
        model = check(encoder, "f32[B,6]", functions="repeated", rtol=1e-4)
    assert len(recorder.named("lower")) == 1
    assert not [node for node in model.graph if node.op_type == "Constant"]
    assert all(value.shape is not None for node in model.graph for value in node.outputs)
    assert [len(value.shape) for value in model.graph.outputs] == [1]
    (block,) = model.functions.values()
    assert not {node.op_type for node in block} & {"Attention", "Linear"}


class Head(nnx.Module):
    """A module called once, whose result is an output; it also returns an argument."""

    def __call__(self, x):
        return x, nnx.softmax(x * jnp.asarray([1.0, -2.0, 0.5, 3.0])).sum(-1)


def test_a_module_called_once_may_give_the_outputs(check):
    model = check(Head(), "f32[B,4]", functions="repeated", rtol=1e-5)
    assert names(model) == []
    assert set(model.opset_imports) == {""}


def test_all_modules(check, encoder):
    model = check(encoder, "f32[B,6]", functions=["*"], rtol=1e-4)
    expected = ["Linear", "Attention", "EncoderBlock", "Linear_2", "Attention_2", "Encoder"]
    assert names(model) == expected


def test_equinox_modules_by_pattern():
    mlp = eqx.nn.MLP(4, 4, 4, 2, key=jax.random.key(0))
    model = trace(jax.vmap(mlp), "f32[B,4]", functions=["Linear"])
    assert "Linear" in names(model)


def test_nothing_is_chosen_by_default(encoder):
    assert names(trace(encoder, "f32[B,6]")) == []


@pytest.mark.parametrize("functions", [["NoSuchBlock"], [3], [type("Silent", (), {})]])
def test_wrong_selections_are_refused(functions):
    with pytest.raises(UsageError) as caught:
        trace(jnp.sin, "f32[2]", functions=functions)
    assert caught.value.code == "E111"


class Halves(eqx.Module):
    """A module that calls a mapped method of its own twice."""

    linear: eqx.nn.Linear

    def half(self, x):
        return jnp.tanh(self.linear(x))

    def __call__(self, x):
        return jax.vmap(self.half)(x) + jax.vmap(self.half)(x * 2)


def test_methods_and_mapped_functions_of_equinox_are_no_repeated_modules(check):
    blocks = [Halves(eqx.nn.Linear(4, 4, key=key)) for key in jax.random.split(jax.random.key(0))]
    model = check(
        lambda x: blocks[1](eqx.filter_vmap(lambda row: row + 1)(blocks[0](x))),
        "f32[B,4]",
        functions="repeated",
        rtol=1e-4,
    )
    assert names(model) == ["Halves"]
