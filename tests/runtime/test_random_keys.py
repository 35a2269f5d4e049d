"""Typed random keys of JAX are accepted where a model takes their integers."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import smelt


def drawn(key, x):
    return jax.random.normal(key, x.shape) + x


KEY, X = jax.random.key(3), np.ones(5, np.float32)


@pytest.mark.parametrize("target", ["onnx", "host"])
def test_compiled_models_take_keys_and_their_integers(target):
    artifact = smelt.compile(drawn, "key[]", "f32[N]", target=target)
    for key in (KEY, jax.random.key_data(KEY), np.asarray(jax.random.key_data(KEY))):
        np.testing.assert_allclose(artifact(key, X)[0], drawn(KEY, X), rtol=1e-5, atol=1e-6)


def test_a_batch_of_keys():
    fn = jax.vmap(lambda key: jax.random.bits(key, (2,)))
    keys = jax.random.split(KEY, 3)
    np.testing.assert_array_equal(smelt.compile(fn, "key[B]")(keys)[0], fn(keys))


def test_a_run_of_a_model_takes_keys():
    model = smelt.trace(drawn, "key[]", "f32[N]")
    names = [value.name for value in model.graph.inputs]
    results = smelt.run(model, dict(zip(names, (KEY, X), strict=True)))
    (result,) = results.values() if isinstance(results, dict) else results
    np.testing.assert_allclose(result, drawn(KEY, X), rtol=1e-5, atol=1e-6)


def test_keys_for_an_input_of_another_type_are_refused():
    with pytest.raises(smelt.SmeltError, match="E632"):
        smelt.compile(lambda x: x + 1, "f32[2]")(jax.random.key_data(KEY))
