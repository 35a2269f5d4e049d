"""Models that approximate on purpose are measured; outputs that have nothing in common still fail."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

import smelt
from smelt.check.compare import Tolerance
from smelt.ir import text
from smelt.ir.approximation import approximation_of, note_approximation


def _model(factor: str, body: str = "y = Mul(x, c)", mark: str = "") -> ir.Model:
    model = text.parse(
        f"g (float[4] x) => (float[4] y, int64[1] i) {{"
        f" c = Constant<value_float={factor}>() {body} i = ArgMax(y) }}"
    )
    if mark:
        note_approximation(model, mark)
    return model


def test_the_error_is_reported_and_allowed() -> None:
    report = smelt.verify(_model("1.0"), _model("1.5", mark="halves"))
    assert report.ok
    assert report.approximation == "halves"
    assert report.mean_rel == pytest.approx(0.5)
    assert report.peak_rel == pytest.approx(0.5)
    assert "50.00% of the mean magnitude (halves)" in repr(report)
    assert report.to_json()["approximation"] == "halves"


def test_a_tolerance_is_held_all_the_same() -> None:
    source, rough = _model("1.0"), _model("1.5", mark="halves")
    assert not smelt.verify(source, rough, tolerance=Tolerance(rtol=0.1)).ok
    assert smelt.verify(source, rough, tolerance=Tolerance(rtol=0.6)).ok


def test_integers_may_differ_and_what_is_not_finite_may_not() -> None:
    scaled = "w = Constant<value_floats=[0.9, 1.0, 1.0, 1.0]>() z = Mul(x, c) y = Mul(z, w)"
    x = np.array([2, 1, 0.5, 1.9], np.float32)  # The largest moves from the first to the last.
    assert smelt.verify(_model("1.0"), _model("1.0", scaled, mark="weights"), [x]).ok
    broken = _model("0.0", "z = Mul(x, c) y = Div(z, z)", mark="signs")
    assert not smelt.verify(_model("1.0"), broken).ok


@pytest.mark.parametrize("factor", ["-1.0", "2.5"])
def test_an_error_as_large_as_the_numbers_is_none_of_an_approximation(factor: str) -> None:
    report = smelt.verify(_model("1.0"), _model(factor, mark="signs"))
    assert not report.ok
    assert "too large for an approximation" in report.problems()[0]


def test_models_that_are_rough_alike_have_to_agree() -> None:
    assert not smelt.verify(_model("1.0", mark="halves"), _model("1.5", mark="halves")).ok


def test_the_mark_is_in_files() -> None:
    proto = smelt.to_proto(_model("1.0", mark="halves"))
    assert approximation_of(smelt.load(proto)) == "halves"
    assert approximation_of(None) == approximation_of(_model("1.0")) == ""
    (result,) = smelt.verify(_model("1.0"), _model("1.0"), [np.zeros(4, np.float32)]).trials
    assert [output.mean_rel for output in result.outputs] == [0.0, 0.0]
