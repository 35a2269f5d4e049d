"""What ONNX Runtime lacks stays plain for all but its files, and files say it again as loaded."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from fixpoint import check_fixpoint
from jax.scipy import special

import smelt
from smelt.ir import scope, text
from smelt.runtime.onnxruntime import OnnxRuntime

FUNCTIONS = {
    "arctan": (jnp.arctan, "f64[4]"),
    "sinh": (jnp.sinh, "f64[4]"),
    "digamma": (special.digamma, "f64[4]"),
    "erf_inv": (special.erfinv, "f64[4]"),
    "erf": (special.erf, "f64[4]"),
    "lgamma": (special.gammaln, "f64[4]"),
    "igamma": (lambda x: special.gammainc(jnp.abs(x) + 1, x * x), "f64[4]"),
}
X = np.array([0.1, -0.3, 0.7, 0.9])


@pytest.mark.parametrize("target", ["c", "host", "onnx"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_doubles_compile_for_every_target(name: str, target: str) -> None:
    function, spec = FUNCTIONS[name]
    artifact = smelt.compile(function, spec, target=target, x64=True)
    with jax.enable_x64(True):
        expected = np.asarray(function(X))
    np.testing.assert_allclose(artifact(X)[0], expected, rtol=1e-13)


MASKS = ("bool[4]", "bool[4]", "bool[4]")


@pytest.mark.parametrize("target", ["c", "host"])
def test_a_choice_between_masks_is_one_instruction(target: str) -> None:
    artifact = smelt.compile(jnp.where, *MASKS, target=target)
    assert [instruction.op for instruction in artifact.plan.steps.instructions] == ["Where"]
    test, yes, no = (np.array(row, bool) for row in ([1, 0, 1, 0], [1, 1, 0, 0], [0, 1, 0, 1]))
    np.testing.assert_array_equal(artifact(test, yes, no)[0], np.where(test, yes, no))


GAPS = """
g (bool[N,4] c, bool[N,4] m, double[N,4] x, int16[N,4] k) => (bool[N,4] a, double[N,4] y, int16[N,4] z) {
    d = Not(c)  a = Where(d, m, c)
    s = Atan(x)  t = Erf(s)  y = Where(a, s, t)
    w = Max(k, k, k)  z = Where(m, k, w)
}
"""


def test_saved_models_optimize_to_the_same_bytes() -> None:
    check_fixpoint(text.parse(GAPS, 17))


@pytest.mark.parametrize("version", [13, 23])
def test_a_model_without_types_is_protected_where_it_is_opened_and_saved(
    version: int, tmp_path: Path
) -> None:
    model = text.parse(GAPS, version)
    for node in scope.nodes(model):
        for value in node.outputs:
            if not value.is_graph_output():
                value.type = value.shape = None
    rng = np.random.default_rng(0)
    c, m = rng.integers(0, 2, (2, 3, 4)).astype(bool)
    x, k = rng.standard_normal((3, 4)), rng.integers(-9, 9, (3, 4), np.int16)
    a, y, z = OnnxRuntime(model)(c, m, x, k)
    np.testing.assert_array_equal(a, np.where(~c, m, c))
    np.testing.assert_array_equal(z, k)
    np.testing.assert_allclose(y[a], np.arctan(x)[a], rtol=1e-15)
    saved = onnx.load(smelt.save(model, tmp_path / "m.onnx", functions=True))
    assert {function.name for function in saved.functions} >= {"Atan", "Erf", "Where", "Max"}
    once = smelt.to_proto(smelt.load(saved), functions=True)  # whose nodes have names
    assert smelt.to_proto(smelt.load(once), functions=True) == once


def test_models_that_nothing_lacks_for_stay_as_they_are() -> None:
    model = text.parse(
        "g (bool[4] c, float[4] x) => (float[4] y) { a = Atan(x) y = Where(c, a, x) }", 13
    )
    model.ir_version = 7
    proto = smelt.to_proto(model)
    assert not proto.functions
    assert proto.ir_version == 7


def test_a_function_that_claims_an_operator_without_a_row_is_left_alone() -> None:
    source = """
    <ir_version: 10, opset_import: ["" : 23, "smelt" : 1]>
    g (float[2] x) => (float[2] y) { y = smelt.Relu(x) }
    <domain: "smelt", opset_import: ["" : 23]>
    Relu (a) => (c) { c = Neg(a) }
    """
    model = text.parse(source)
    (function,) = model.functions.values()
    function.metadata_props["smelt.in_place_of"] = "Relu"
    loaded = smelt.load(smelt.to_proto(model))
    assert [node.op_type for node in loaded.graph] == ["Neg"]


def test_constants_are_folded_in_double_precision() -> None:
    model = text.parse(
        "g (double[2] x) => (double[2] y) <double[2] k = {0.3, -1.7}> { e = Erf(k) y = Add(x, e) }"
    )
    optimized = smelt.optimize(model)
    assert [node.op_type for node in optimized.graph] == ["Add"]
    (got,) = OnnxRuntime(optimized)(np.zeros(2))
    np.testing.assert_allclose(got, [0.3286267594591274, -0.9837904585907746], rtol=1e-15)
