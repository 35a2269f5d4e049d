"""What ``optimize`` makes of whole models stays as it is: by path, as protobuf, and in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
from fixpoint import check_fixpoint

import smelt
from smelt.compiler import optimize_model
from smelt.errors import ErrorList, Unsupported
from smelt.ir import text
from smelt.ir.opsets.raise_opset import raise_opset
from smelt.targets.registry import find_target

MODELS = sorted((Path(__file__).parent / "models").glob("*.onnx"))
LIGHT = sorted((Path(onnx.__file__).parent / "backend/test/data/light").glob("light_*.onnx"))
KEPT, NEWEST = {"highest_opset": 0}, {"opset": 23}


@pytest.mark.parametrize("options", [{}, KEPT, NEWEST], ids=["raised", "kept", "newest"])
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_exported_models(path: Path, options: dict[str, int]) -> None:
    check_fixpoint(path, **options)


@pytest.mark.parametrize("pipeline", ["default", "freeze-defaults,default"])
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=[] if "squeezenet" in path.stem else [pytest.mark.slow])
        for path in LIGHT
    ],
    ids=lambda path: path.stem,
)
def test_light_models(path: Path, pipeline: str) -> None:
    check_fixpoint(path, pipeline=pipeline)


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models_optimized_for_a_target_stay(path: Path, target: str) -> None:
    """But for names: an attention that the first run expanded is one operator, and expanded again,
    in the second."""
    chosen = find_target(target)
    options: dict[str, Any] = {
        "pipeline": f"default,{chosen.passes}",
        "operators": frozenset(operator.key for operator in chosen.operators),
        "kernels": chosen.kernels,
    }
    once = smelt.optimize(smelt.load(path), **options)
    expected = text.canonical(once)
    assert text.canonical(smelt.optimize(once, **options)) == expected


@pytest.mark.parametrize("form", [Path, smelt.load, onnx.load], ids=["path", "IR", "protobuf"])
def test_every_form_of_a_model(form: object) -> None:
    path = Path(__file__).parent / "models" / "torchscript_cnn.onnx"
    assert callable(form)
    once = smelt.optimize(form(path))
    twice = smelt.optimize(once)
    assert text.canonical(_ir(once)) == text.canonical(_ir(twice))


def _ir(model: object) -> object:
    return smelt.load(model) if isinstance(model, onnx.ModelProto) else model


GELU_AND_RMS = """
agraph (float[N, 4, 6] x) => (float[N, 4, 6] y, float[N, 4, 6] z) {
    half = Constant<value_float=0.5>()  root = Constant<value_float=1.4142135>()
    one = Constant<value_float=1.0>()   tiny = Constant<value_float=1e-5>()
    two = Constant<value_float=2.0>()   last = Constant<value_ints=[-1]>()
    p = Div(x, root)  q = Erf(p)  r = Add(q, one)  t = Mul(x, r)  y = Mul(t, half)
    square = Pow(x, two)  mean = ReduceMean(square, last)
    shifted = Add(mean, tiny)  rms = Sqrt(shifted)
    u = Div(x, rms)
    z = Relu(u)
}
"""


@pytest.mark.parametrize("highest", [23, 20], ids=["as rules need", "as operators have forms"])
def test_the_opset_is_raised_as_far(highest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gelu is of opset 20, RMSNormalization of 23."""

    def refuse(model: ir.Model, to: int) -> None:
        if to > highest:
            raise ErrorList([Unsupported("E230", f"no form in opset {to}")])
        raise_opset(model, to)

    monkeypatch.setattr("smelt.passes.interface.raise_opset.raise_model", refuse)
    model = smelt.optimize(text.parse(GELU_AND_RMS, 18))
    assert model.opset_imports[""] == highest
    assert "Gelu" in {node.op_type for node in model.graph}
    check_fixpoint(text.parse(GELU_AND_RMS, 18))


def test_a_bound_that_is_reached_is_reported() -> None:
    model = text.parse("agraph (float[2] x) => (float[2] y) { a = Relu(x)  y = Relu(a) }", 23)
    reports = optimize_model(model, pipeline="fixpoint(merge-consecutive-relus){max=1}")
    assert ("fixpoint", "the pass still changes the model in round 1 of 1") in reports[
        0
    ].stats.missed
    reports = optimize_model(model, pipeline="fixpoint(merge-consecutive-relus){max=2}")
    assert not reports[0].stats.missed


def test_equal_weights_make_one_product() -> None:
    """Not one product with both weights side by side, which is twice the work."""
    rows = ", ".join(str(i % 7) for i in range(64))
    model = smelt.optimize(
        text.parse(
            f"""agraph (float[N, 8] x) => (float[N, 8] y, float[N, 8] z)
            <float[8, 8] w = {{{rows}}}, float[8, 8] v = {{{rows}}}> {{
                p = MatMul(x, w)  q = MatMul(x, v)  y = Relu(p)  z = Neg(q)
            }}"""
        )
    )
    assert sorted(node.op_type for node in model.graph) == ["MatMul", "Neg", "Relu"]


def test_equal_expressions_of_equal_constants_are_one() -> None:
    rows = ", ".join(str(i % 7) for i in range(256))
    model = smelt.optimize(
        text.parse(
            f"""agraph (float[N, 16] x, float[N, 16] u) => (float[N, 16] y, float[N, 16] z)
            <int8[16, 16] w = {{{rows}}}, int8[16, 16] v = {{{rows}}},
             float s = {{0.5}}, float t = {{0.5}}> {{
                a = DequantizeLinear(w, s)  b = DequantizeLinear(v, t)
                y = MatMul(x, a)  z = MatMul(u, b)
            }}"""
        )
    )
    assert [node.op_type for node in model.graph].count("DequantizeLinear") == 1
