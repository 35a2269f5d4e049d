"""To raise the opset is a step like a pass: reported, watched, verified and bisected."""

from __future__ import annotations

import re

import onnx_ir as ir
import pytest

import smelt
from smelt.check.bisect import bisect
from smelt.compiler import optimize_model
from smelt.errors import Mismatch
from smelt.frontends.onnx import load
from smelt.ir import text
from smelt.ir.interface_change import OpsetChanged
from smelt.ir.opsets import raise_opset

GELU = """
    g (float[B,4] x) => (float[B,4] y) {
        h = Constant<value_float=0.5>() o = Constant<value_float=1.0>()
        r = Constant<value_float=1.4142135>() z = Div(x, r) e = Erf(z) g = Add(e, o)
        p = Mul(x, g) y = Mul(p, h)
    }
"""
MEAN = "g (float[B,4] x) => (float[B,1] y) { y = ReduceMean<axes=[1]>(x) }"


def test_the_report_says_what_for() -> None:
    reports = optimize_model(text.parse(GELU, 17))
    [raised] = [report for report in reports if report.name == "raise_opset"]
    assert raised.stats.interface == [OpsetChanged(17, 20, ("fuse-gelu-exact",))]
    [fact] = raised.to_json()["interface"]
    assert fact["text"] == "opset 17 -> 20 (fuse-gelu-exact)"
    assert (fact["change"], fact["before"], fact["after"]) == ("opset", 17, 20)
    assert raised.text == "raise-opset{to=20 needed-by=fuse-gelu-exact}"


@pytest.mark.parametrize(("opset", "given", "after"), [(11, None, 13), (13, 18, 18)])
def test_models_are_brought_to_an_opset_by_the_same_step(opset, given, after) -> None:
    seen = []

    class Watch:
        def before_pass(self, step, model):
            seen.append((str(step), model.opset_imports[""]))

        def after_pass(self, step, model, report):
            seen.append((str(step), model.opset_imports[""]))

    source = text.parse(MEAN, opset)
    done = smelt.optimize(source, opset=given, observers=[Watch()], verify="each")
    name = f"raise-opset{{to={after}}}" if after != 13 else "raise-opset"
    assert seen[:2] == [(name, opset), (name, after)]
    assert done.opset_imports[""] == after


@pytest.fixture
def _wrong_axes(monkeypatch, tmp_path):
    """Reductions lose their last axis on the way to opset 18."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    right = raise_opset.ADAPTERS["ReduceMean", 18]

    def wrong(node, rewriter):
        axes = node.attributes["axes"].as_ints()
        node.attributes.add(raise_opset.ir.AttrInt64s("axes", [axes[0] - 1, *axes[1:]]))
        right(node, rewriter)

    monkeypatch.setitem(raise_opset.ADAPTERS, ("ReduceMean", 18), wrong)


SQUARE = "g (float[4,4] x) => (float[N,M] y) { y = ReduceMean<axes=[1]>(x) }"


@pytest.mark.usefixtures("_wrong_axes")
def test_a_wrong_step_names_itself() -> None:
    with pytest.raises(Mismatch) as caught:
        smelt.optimize(text.parse(SQUARE, 17), opset=18, verify="each")
    assert caught.value.code == "E701"
    assert "pass raise-opset changed the result" in caught.value.what
    with pytest.raises(Mismatch):
        smelt.optimize(text.parse(SQUARE, 17), opset=18, verify="final")


@pytest.mark.usefixtures("_wrong_axes")
def test_a_wrong_step_is_bisected_to() -> None:
    def optimize(work, limit, watching):
        return optimize_model(work, opset=18, rewrites=limit, observers=watching)

    culprit = bisect(text.parse(SQUARE, 17), optimize)
    assert culprit is not None
    assert re.match("raise-opset", culprit.pass_text)
    assert any("axes=[1]" in line or "axes" in line for line in culprit.removed)
    assert culprit.rules == ("opset raised",)


def test_an_average_pool_is_rounded_otherwise_from_opset_19_on() -> None:
    pool = "g (float[1,2,7,9] x) => (float[1,2,5,7] y) { y = AveragePool<kernel_shape=[3,3]>(x) }"
    for given, opset, kind in ((18, 19, "rounding"), (17, 18, "exact"), (19, 23, "exact")):
        [report] = optimize_model(text.parse(pool, given), pipeline="", opset=opset, verify="each")
        assert report.exactness.kind == kind


def test_a_model_with_functions_is_raised_by_the_same_step() -> None:
    source = ir.from_onnx_text("""
        <ir_version: 8, opset_import: ["" : 11, "own" : 1]>
        g (float[4] x) => (float[1] y) { z = own.twice(x) y = ReduceSum<axes=[0], keepdims=1>(z) }
        <domain: "own", opset_import: ["" : 11]>
        twice (a) => (b) { b = Add(a, a) }
    """)
    model = load(ir.to_proto(source), keep_opset=True)
    assert model.opset_imports[""] == 11
    reports = optimize_model(model, verify="each")
    assert reports[0].text == "raise-opset"
    assert model.opset_imports[""] == 13
