"""Verifying each pass: wrong rules are caught and named, right ones pass."""

import json
from dataclasses import replace

import numpy as np
import pytest
import wrong_rules
from wrong_rules import HARMLESS, WRONG, model, wrong_pass

from smelt.check.bisect import bisect
from smelt.check.each import VerifyEach, VerifyFinal
from smelt.errors import Mismatch
from smelt.ir.pattern import op, var
from smelt.ir.rule import rule
from smelt.passes.base import EXACT, PassContext, exact_but_zero_sign, graph_pass, rounding
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


def test_a_source_that_no_pass_changes_is_not_run(monkeypatch):
    def opened(*_, **__):
        raise AssertionError("the source was opened")

    monkeypatch.setattr("smelt.check.comparison_side.open_runner", opened)
    compile_with("g (float[B,4] x) => (float[B,4] y) { y = Relu(x) }", [HARMLESS], VerifyFinal)


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


NUDGE = np.float32(1 + 2**-20)
"""Eight ulp of a float32."""


def _once(name, exactness):
    """Return a pass that adds an error to one Abs in its first run."""

    @graph_pass(name, "A pass that moves a result a little.", exactness=exactness)
    def body(cx, rewriter, stats, options):
        for node in list(cx.model.graph):
            if node.op_type == "Abs" and not rewriter.exhausted:
                b = rewriter.builder(node, [node], name)
                moved = b.op("Abs", b.op("Mul", node.inputs[0], b.constant(NUDGE)))
                rewriter.replace(node, [moved], trust_shape=True)
                stats.fired[name] += 1
                return

    return body


DRIFT = "g (float[B,8] x) => (float[B,8] y) { t = Neg(x)  y = Abs(t) }"


def test_steps_that_keep_to_their_margins_may_not_drift_away_together():
    passes = [_once(f"nudge_{i}", rounding(1)) for i in range(30)]
    for each in passes[:2]:
        compile_with(DRIFT, [each], VerifyEach)
    with pytest.raises(Mismatch) as caught:
        compile_with(DRIFT, passes, VerifyEach)
    assert caught.value.code == "E701"
    assert "add up to a wrong result" in caught.value.what
    with pytest.raises(Mismatch):
        compile_with(DRIFT, passes, VerifyFinal)


def test_one_ulp_is_too_much_for_what_is_declared_exact():
    text = "g (float[B,8] x) => (float[B,8] y) { t = Abs(x)  y = Neg(t) }"
    one = _once("nudge", EXACT)
    with pytest.raises(Mismatch) as caught:
        compile_with(text, [one], VerifyEach)
    assert "declares itself exact" in caught.value.why
    compile_with(text, [replace(one, exactness=rounding(1))], VerifyEach)


def test_passes_that_changed_nothing_lend_no_margin():
    """Sixty passes of 64 ulp that do not fire; one exact pass moves the result by 8 ulp."""
    idle = [replace(HARMLESS, name=f"idle_{i}", exactness=rounding(64)) for i in range(60)]
    with pytest.raises(Mismatch) as caught:
        compile_with(DRIFT, [*idle, _once("nudge", EXACT)], VerifyFinal)
    assert caught.value.code == "E702"
    assert "declare exact" in caught.value.why


def test_zeros_of_another_sign_are_other_bits():
    text = "g (float[B,8] x) => (float[B,8] y) { y = Abs(x) }"

    @rule(op("Abs", var("x")))
    def times_sign(m, b):
        return b.op("Mul", m["x"], b.op("Sign", m["x"]))

    wrong = wrong_pass(times_sign)
    with pytest.raises(Mismatch) as caught:
        compile_with(text, [wrong], VerifyEach)
    assert "-0.0" in str(caught.value)
    compile_with(text, [replace(wrong, exactness=exact_but_zero_sign("here"))], VerifyEach)


def test_nan_is_nan_whatever_its_payload():
    text = "g (float[B,8] x) => (float[B,8] y) { y = Log(x) }"

    @rule(op("Log", var("x")), same_shape=True)
    def negated_twice(m, b):
        log = b.op("Log", m["x"])
        log.producer().metadata_props["seen"] = "1"
        return None if m.root.metadata_props else b.op("Neg", b.op("Neg", log))

    compile_with(text, [wrong_pass(negated_twice)], VerifyEach)


def test_bisect_judges_as_each_does():
    """An exact pass follows a pass that declares much rounding.

    Its error of one ulp is within the sum, but beyond its own declaration.
    """
    steps = [Step(_once("generous", rounding(64))), Step(_once("mean", EXACT))]

    def optimize(work, limit, watching):
        cx = PassContext.of(work)
        cx.rewrites_left = limit
        return run(cx, steps, watching)

    compile_with(DRIFT, steps, VerifyFinal)
    with pytest.raises(Mismatch) as caught:
        compile_with(DRIFT, steps, VerifyEach)
    assert "pass mean" in caught.value.what
    culprit = bisect(model(DRIFT), optimize)
    assert culprit is not None
    assert (culprit.pass_text, culprit.rewrite) == ("mean", 2)
