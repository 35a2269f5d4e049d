"""float64: refused with the remedy, or computed in float32 by the option ``float64``."""

from __future__ import annotations

import numpy as np
import pytest
from targets.coreml.packages import types, written
from targets.coreml.test_target import errors

from smelt.errors import UsageError
from smelt.ir import text
from smelt.runtime.runner import run

ROWS = {
    "a constant": "g (double[2] x) => (double[2] y) <double[2] c = {0.5, 1e-60}> { y = Sub(x, c) }",
    "casts": (
        "g (double[2] x, int64[2] i) => (float[2] y, double[2] z) "
        "{ d = Cast<to = 11>(i) z = Mul(x, d) y = Cast<to = 1>(z) }"
    ),
    "a filled tensor": (
        "g (double[B] x) => (double[B] y) "
        "{ s = Shape(x) f = ConstantOfShape<value = double[1] {2.5}>(s) y = Mul(x, f) }"
    ),
    "a branch": (
        "g (double[2] x, bool b) => (double[2] y) "
        "{ y = If (b) <then_branch = t () => (double[2] p) { p = Exp(x) }, "
        "else_branch = e () => (double[2] q) { q = Neg(x) }> }"
    ),
    "a scalar": "g (double x) => (double y) { y = Sqrt(x) }",
}


@pytest.mark.parametrize("row", ROWS)
def test_it_is_computed_in_float32(row: str) -> None:
    source = ROWS[row]
    dims = {"B": (1, 4)} if "B" in source else None
    artifact = written(source, dims=dims, float64="float32")
    x = np.asarray(0.7) if "double x" in source else np.array([1.3, 2.7])
    second = {"int64": [np.array([2, 3])], "bool": [np.array(True)]}
    feeds = [x, *next((more for kind, more in second.items() if f"{kind}" in source), [])]
    assert artifact.report["narrowed"] == {"float64": "float32"}
    for found, wanted in zip(artifact(*feeds), run(text.parse(source), feeds), strict=True):
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, 1e-6, 1e-6)


def test_precision_applies_to_it() -> None:
    artifact = written(ROWS["a scalar"], float64="float32", precision="fp16")
    assert "cast" in types(artifact)
    (found,) = artifact(np.asarray(2.0))
    assert found == np.float16(np.sqrt(2))


@pytest.mark.parametrize("number", ["1e300", "-1e39", "1e-60"])
@pytest.mark.parametrize("precision", ["fp16", "fp32"])
def test_a_constant_beyond_float32_is_refused(number: str, precision: str) -> None:
    model = f"g (double[2] x) => (double[2] y) <double c = {{{number}}}> {{ y = Add(x, c) }}"
    (error,) = errors(model, float64="float32", precision=precision)
    assert error.code == "E402"
    assert "float32" in error.why


def test_an_input_beyond_float32_is_refused() -> None:
    artifact = written(ROWS["a scalar"], float64="float32")
    with pytest.raises(UsageError, match="beyond float32") as caught:
        artifact(np.asarray(1e300))
    assert caught.value.code == "E632"
    assert artifact(np.asarray(np.inf))[0] == np.inf


def test_infinity_is_no_constant_beyond_float32() -> None:
    model = "g (double[2] x) => (double[2] y) <double[2] c = {inf, 1}> { y = Min(x, c) }"
    assert written(model, float64="float32")(np.array([2.0, 3.0]))[0].tolist() == [2, 1]


@pytest.mark.parametrize(
    ("kind", "remedy"), [("double", "float64=float32"), ("uint32", "int32"), ("uint64", "int32")]
)
def test_a_refusal_names_the_remedy(kind: str, remedy: str) -> None:
    (error,) = errors(
        f"g ({kind}[2] x) => ({kind}[1] y) {{ p = Add(x, x) y = ReduceMax <keepdims = 1> (p) }}"
    )
    assert error.code == "E402"
    assert remedy in error.fix
