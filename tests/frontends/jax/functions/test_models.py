"""Passes, checks and targets work on models with functions of JAX code."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime as ort
import pytest
from flax import nnx

import smelt
from smelt.ir.verify import problems_of


class Mixer(nnx.Module):
    def __init__(self, width: int, rngs: nnx.Rngs):
        self.norm = nnx.LayerNorm(width, rngs=rngs)
        self.mlp = nnx.Linear(width, width, rngs=rngs)

    def __call__(self, x):
        return x + nnx.gelu(self.mlp(self.norm(x)))


class Net(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.mixers = nnx.List([Mixer(8, rngs) for _ in range(3)])

    def __call__(self, x):
        for mixer in self.mixers:
            x = mixer(x)
        return x


@pytest.fixture(scope="module")
def net():
    return Net(nnx.Rngs(0))


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).standard_normal((2, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def model(net):
    return smelt.trace(net, "f32[B,8]", functions=[Mixer])


def test_optimized_bodies_are_checked_saved_and_run(model, net, x, tmp_path):
    better = smelt.optimize(model, verify="each", dims={"B": 2})
    assert not list(problems_of(better))
    assert [node.op_type for node in better.graph] == ["Mixer"] * 3
    (body,) = better.functions.values()
    assert {"LayerNormalization", "Gelu"} <= {node.op_type for node in body}
    path = tmp_path / "net.onnx"
    smelt.save(better, path)
    onnx.checker.check_model(str(path), full_check=True)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], net(x), rtol=1e-4, atol=1e-5)
    from onnx.reference import ReferenceEvaluator

    (reference,) = ReferenceEvaluator(str(path)).run(None, {"x": x})
    np.testing.assert_allclose(reference, net(x), rtol=1e-4, atol=1e-5)
    assert len(smelt.load(path, inline=False).functions) == 1
    assert not smelt.load(path).functions


@pytest.mark.parametrize("target", ["onnx", "host", "c"])
def test_targets_keep_functions_or_inline_them(model, net, x, target):
    artifact = smelt.compile(model, target=target, dims={"B": 2})
    assert len(artifact.model.functions) == (1 if target == "onnx" else 0)
    (got,) = artifact.load()(x)
    np.testing.assert_allclose(got, net(x), rtol=1e-4, atol=1e-5)
    assert len(model.functions) == 1


def test_sizes_can_be_bound_later(model):
    fixed = smelt.optimize(model, pipeline="materialize-symbolic-dims{dims=B=2},default")
    assert [str(dim) for dim in fixed.graph.outputs[0].shape] == ["2", "8"]
    assert len(fixed.functions) == 1


def test_calls_of_constants_only(x):
    @smelt.function
    def table(w):
        return jnp.sin(w) @ w

    w = np.ascontiguousarray(x[:, :2])
    model = smelt.trace(lambda x: x + table(jnp.asarray(w)) + table(w), "f32[2,2]")
    better = smelt.optimize(model, verify="each")
    (got,) = smelt.compile(better).load()(w)
    np.testing.assert_allclose(got, w + 2 * (np.sin(w) @ w), rtol=1e-5)
