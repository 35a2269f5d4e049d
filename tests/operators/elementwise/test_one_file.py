"""An operator declared in one file reaches JAX, folding, every target, checks and documentation."""

from __future__ import annotations

import math

import numpy as np
import onnx
import pytest
from jax.extend.core import Primitive
from onnxruntime import InferenceSession

import smelt
from smelt.frontends.jax.registry import RULES
from smelt.ir import text
from smelt.operators import register, registry
from smelt.operators.formula import elementwise
from smelt.targets.describe import describe_operator


def log_cosh(m, x, scale):
    size = m.abs(x * scale)
    return size + m.log1p(m.exp(size * -2.0)) - math.log(2)


OPERATOR = elementwise(
    "LogCosh",
    log_cosh,
    "Logarithm of the hyperbolic cosine",
    inputs=("x", "scale"),
    domain="test.one_file",
    primitive="test.log_cosh",
)

GRAPH = "g (float[3,N] x, float[N] s) => (float[3,N] y) { y = test.one_file.LogCosh(x, s) }"
X = np.array([[0.0, -0.0, 1e-3, -2.0], [90.0, -300.0, 0.5, 1.0], [np.nan, np.inf, -np.inf, 7.0]])
SCALE = np.array([1.0, 2.0, -0.5, 1.0])


@pytest.fixture(autouse=True)
def declared():
    RULES.fill()
    with registry.OPERATORS.refilled():
        register(OPERATOR)
        yield


@pytest.fixture
def log_cosh_of():
    primitive = Primitive("test.log_cosh")
    primitive.def_abstract_eval(lambda x, scale: x)
    return primitive.bind


def expected(x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return np.logaddexp(x * scale, -x * scale) - np.log(2)


@pytest.mark.parametrize("target", ["c", "host", "onnx"])
def test_every_target_computes_it(target: str) -> None:
    model = text.parse(GRAPH)
    artifact = smelt.compile(model, target=target, dims={"N": 4})
    x, scale = X.astype(np.float32), SCALE.astype(np.float32)
    (y,) = artifact(x, scale)
    np.testing.assert_allclose(y, expected(x, scale), rtol=1e-6, atol=1e-7)
    assert smelt.verify(model, artifact, dims={"N": 4}).ok


def test_c_calls_one_function_of_it() -> None:
    artifact = smelt.compile(text.parse(GRAPH), target="c", dims={"N": 4})
    assert artifact.files["model.c"].count(b"log1p(") == 1


def test_jax_binds_it(log_cosh_of) -> None:
    model = smelt.trace(log_cosh_of, "f32[N]", "f32[N]")
    assert [(node.domain, node.op_type) for node in model.graph] == [("test.one_file", "LogCosh")]


def test_constants_are_folded() -> None:
    model = smelt.optimize(
        text.parse(
            "g (double[2] z) => (double[2] y) <double[2] c = {1.0, -3.0}, double s = {2.0}> "
            "{ v = test.one_file.LogCosh(c, s) y = Add(v, z) }"
        )
    )
    assert [node.op_type for node in model.graph] == ["Add"]
    (folded,) = [v.const_value.numpy() for v in model.graph.initializers.values()]
    np.testing.assert_allclose(folded, expected(np.array([1.0, -3.0]), 2.0), rtol=1e-15)


def test_any_runtime_loads_what_is_saved(tmp_path) -> None:
    path = smelt.save(text.parse(GRAPH), tmp_path / "m.onnx")
    onnx.checker.check_model(path, full_check=True)
    x, scale = X.astype(np.float32), SCALE.astype(np.float32)
    (y,) = InferenceSession(path).run(None, {"x": x, "s": scale})
    np.testing.assert_allclose(y, expected(x, scale), rtol=1e-6, atol=1e-7)
    kept = smelt.to_proto(text.parse(GRAPH), functions=True)
    assert [node.op_type for node in smelt.load(kept).graph] == ["LogCosh"]


def test_it_is_explained() -> None:
    facts = describe_operator("test.one_file", "LogCosh")
    assert facts["summary"] == OPERATOR.summary
    assert all(facts["targets"][name]["takes"] for name in ("c", "host", "onnx"))
