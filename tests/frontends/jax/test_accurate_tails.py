"""Small results of ``jax.nn.sigmoid`` stay accurate in ONNX Runtime if a reader depends on them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import smelt
from smelt.ir import scope
from smelt.ir.provenance import origin_of

X = np.array([-86, -40, -20, -17, -16, -1, 0, 15, 17, 60], np.float32)


def cross_entropy(x: jax.Array) -> jax.Array:
    p = jax.nn.sigmoid(x)
    return -(0.25 * jnp.log(p) + 0.75 * jnp.log1p(-p * (p < 0.5)))


READ = {
    "an output": jax.nn.sigmoid,
    "a logarithm": lambda x: jnp.log(jax.nn.sigmoid(x)),
    "log_sigmoid": jax.nn.log_sigmoid,
    "a cross entropy": cross_entropy,
    "odds": lambda x: jax.nn.sigmoid(-x) / jax.nn.sigmoid(x),
    "a mixture": lambda x: jnp.log(jax.nn.sigmoid(x)[:, None] @ jnp.full((1, 2), 2.0)),
    "in a loop": lambda x: jax.lax.fori_loop(
        0, 2, lambda i, s: s + jnp.log(jax.nn.sigmoid(x)), x * 0
    ),
    "in a function": lambda x: jax.jit(jax.nn.sigmoid)(x) ** 0.5,
}


@pytest.mark.parametrize("function", READ.values(), ids=READ)
def test_small_results_are_as_in_jax(function) -> None:
    artifact = smelt.compile(function, "f32[N]", target="onnx")
    np.testing.assert_allclose(artifact(X)[0], function(X), rtol=3e-6)


def operators(function, spec: str = "f32[3,4]") -> list[str]:
    model = smelt.trace(function, spec)
    return [node.op_type for node in scope.nodes(model)]


def test_gates_are_one_node() -> None:
    gates = {
        "swish": jax.nn.silu,
        "glu": lambda x: x[:, :2] * jax.nn.sigmoid(x[:, 2:]),
        "gru": lambda x: (1 - jax.nn.sigmoid(x)) * jnp.tanh(x) + jax.nn.sigmoid(x) * x,
        "half floats": lambda x: jax.nn.sigmoid(x.astype(jnp.float16)),
    }
    for name, function in gates.items():
        assert "Sigmoid" in operators(function), name
        assert "Exp" not in operators(function), name


def test_names_and_lines_stay() -> None:
    model = smelt.trace(lambda x: {"p": jax.nn.sigmoid(x)}, "f32[3]")
    assert [node.op_type for node in model.graph] == ["Neg", "Exp", "Add", "Div"]
    assert [value.name for value in model.graph.outputs] == ["out_p"]
    sources = {source for node in model.graph for source in origin_of(node).sources}
    assert len(sources) == 1
    assert "test_accurate_tails.py" in sources.pop()
