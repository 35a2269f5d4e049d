"""Verifying each pass: wrong rules are caught and named, right ones pass."""

import json

import pytest
import wrong_rules
from wrong_rules import HARMLESS, WRONG, model, wrong_pass

from smelt.check.each import VerifyEach, VerifyFinal
from smelt.errors import Mismatch
from smelt.passes.base import PassContext
from smelt.passes.pipeline import Step, parse
from smelt.passes.run import run


@pytest.fixture(autouse=True)
def _reproducers_in_the_test_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def compile_with(text, passes, observer):
    graph = model(text)
    steps = tuple(item if isinstance(item, Step) else Step(item) for item in passes)
    checker = observer(graph.clone(), steps)
    run(PassContext.of(graph), steps, [checker])
    checker.finish(graph)
    return graph


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.name)
def test_a_wrong_pass_is_named(rule):
    with pytest.raises(Mismatch) as caught:
        compile_with(WRONG[rule], [HARMLESS, wrong_pass(rule)], VerifyEach)
    assert caught.value.code == "E701"
    assert rule.name.replace("_", "-") in caught.value.what
    assert f"{rule.name} x1" in caught.value.at[0]


@pytest.mark.parametrize("rule", WRONG, ids=lambda rule: rule.name)
def test_a_wrong_pipeline_is_caught_at_the_end(rule):
    with pytest.raises(Mismatch) as caught:
        compile_with(WRONG[rule], [wrong_pass(rule)], VerifyFinal)
    assert caught.value.code == "E702"


@pytest.mark.parametrize("observer", [VerifyEach, VerifyFinal])
@pytest.mark.parametrize("text", WRONG.values())
def test_a_right_pipeline_passes(text, observer):
    compile_with(text, [HARMLESS], observer)


IMAGES = "g (float[N,4,6,3] switch) => (float[N,4,6,3] y) { a = Exp(switch)  y = Relu(a) }"
ASKED = {
    "names": "sanitize-input-output-names",
    "floats": "update-output-dtypes{dtypes=float16}",
    "integers": "update-output-dtypes{dtypes=int32}",
    "layouts": "image-input-preprocess{inputs=switch outputs=y}, reduce-transposes",
    "sizes": "materialize-symbolic-dims{dims=N=2}, noop-elimination",
    "all of it": "materialize-symbolic-dims{dims=N=2}, image-input-preprocess{inputs=switch},"
    " sanitize-input-output-names, update-output-dtypes{dtypes=bfloat16}",
}


@pytest.mark.parametrize("observer", [VerifyEach, VerifyFinal])
@pytest.mark.parametrize("pipeline", ASKED.values(), ids=ASKED.keys())
def test_changes_of_the_interface_that_were_asked_for_are_followed(pipeline, observer):
    compile_with(IMAGES, parse(pipeline), observer)


@pytest.mark.parametrize(("observer", "code"), [(VerifyEach, "E701"), (VerifyFinal, "E702")])
@pytest.mark.parametrize("pipeline", ASKED.values(), ids=ASKED.keys())
def test_a_wrong_pass_after_such_a_change_is_caught(pipeline, observer, code):
    steps = (*parse(pipeline), Step(wrong_pass(wrong_rules.drop_relu)))
    with pytest.raises(Mismatch) as caught:
        compile_with(IMAGES.replace("Exp", "Neg"), steps, observer)
    assert caught.value.code == code
    if observer is VerifyEach:
        assert "drop-relu" in caught.value.what


def test_a_pass_that_makes_an_unrunnable_model_is_named():
    from smelt.ir.pattern import op, var
    from smelt.ir.rule import rule

    broken = rule(op("Relu", var("x")), same_shape=True)(
        lambda m, b: b.op("NoSuchOperator", m["x"])
    )
    with pytest.raises(Mismatch) as caught:
        compile_with(WRONG[wrong_rules.drop_relu], [wrong_pass(broken)], VerifyEach)
    assert caught.value.code == "E701"


def test_the_reproducer_holds_the_model_before_the_pass(tmp_path):
    text = "g (float[B,4] x) => (float[B,4] y) { a = Identity(x)  y = Relu(a) }"
    with pytest.raises(Mismatch) as caught:
        compile_with(text, [HARMLESS, wrong_pass(wrong_rules.drop_relu)], VerifyEach)
    (folder,) = tmp_path.glob("smelt-reproducer-*")
    assert str(folder) in caught.value.fix
    assert (folder / "pipeline.txt").read_text().strip() == "drop-relu"
    report = json.loads((folder / "report.json").read_text())
    assert report["error"]["code"] == "E701"
    assert report["versions"]["onnx"]
    from smelt.frontends.onnx import load

    assert [node.op_type for node in load(folder / "model.onnx").graph] == ["Relu"]
    assert "bisect model.onnx --pipeline @pipeline.txt" in (folder / "repro.sh").read_text()
