"""``--report FILE``: a page beside what a command writes anyway."""

from __future__ import annotations

import json
import re
import sys
from functools import partial

import pytest
from small_models import HEADER, MODEL
from wrong_rules import HARMLESS, drop_relu, wrong_pass

from smelt.passes.pipeline import Step


def data(page: str) -> dict:
    found = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    return json.loads(found[0])


@pytest.fixture
def report(tmp_path):
    """The file that a report goes to; its data is read by ``data``."""
    return tmp_path / "report.html"


def test_optimize_writes_the_model_and_a_page(smelt, write, report, tmp_path):
    result = smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--report", report)
    assert result.exit_code == 0
    assert f"report: {report}" in result.stderr
    found = data(report.read_text())
    assert found["schema"] == "smelt.report/1"
    assert [len(found[side]["nodes"]) for side in ("before", "after")] == [3, 2]
    assert (tmp_path / "o.onnx").exists()


def test_optimize_draws_a_layer(smelt, write, tmp_path):
    picture = tmp_path / "layer.svg"
    result = smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--picture", picture)
    assert result.exit_code == 0
    assert f"picture: {picture}" in result.stderr
    assert picture.read_text().startswith("<svg ")
    result = smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--picture", "-")
    assert result.stdout.startswith("<svg ")
    result = smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--picture", "-", "--json")
    assert result.exit_code == 2
    for path, code in ((tmp_path / "no" / "p.svg", "E614"), (tmp_path / "o.onnx", "E637")):
        result = smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--picture", path)
        assert result.exit_code == 2
        assert code in result.stderr


def test_diff_shows_both_files(smelt, write, report, tmp_path):
    smelt("optimize", write(), "-o", tmp_path / "o.onnx")
    result = smelt("diff", write(), tmp_path / "o.onnx", "--report", report)
    assert result.exit_code == 1
    assert "all nodes" in result.stdout
    found = data(report.read_text())
    assert [len(found[side]["nodes"]) for side in ("before", "after")] == [3, 2]
    assert found["sides"][1].endswith("o.onnx")
    result = smelt("diff", write(), tmp_path / "o.onnx", "--report", "-")
    assert result.exit_code == 1
    assert result.stdout.startswith("<!doctype html>")
    result = smelt("diff", write(), tmp_path / "o.onnx", "--report", "-", "--json")
    assert result.exit_code == 2


def test_optimize_says_what_was_verified(smelt, write, report, tmp_path):
    smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--report", report, "--verify", "each")
    numbers = data(report.read_text())["numbers"]
    assert numbers["title"].endswith("verified each")
    assert [row["sizes"] for row in numbers["rows"]] == ["B=1"] * 2 + ["B=3"] * 4
    assert all(row["error"] == 0 for row in numbers["rows"])


def test_a_report_may_go_to_standard_output_but_not_with_something_else(smelt, write, tmp_path):
    result = smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--report", "-")
    assert result.stdout.startswith("<!doctype html>")
    for other in (["-o", "-"], ["-o", tmp_path / "o.onnx", "--json"]):
        result = smelt("optimize", write(), *other, "--report", "-")
        assert result.exit_code == 2
        assert "E637" in result.stdout + result.stderr
    path = tmp_path / "same"
    result = smelt("optimize", write(), "-o", path, "--report", path)
    assert result.exit_code == 2
    assert not path.exists()


def test_a_report_that_has_no_place_is_refused_before_anything_is_done(smelt, write, tmp_path):
    model, output = write(), tmp_path / "o.onnx"
    before = model.read_bytes()
    places = {"E614": [tmp_path / "no" / "r.html", tmp_path], "E637": [model, output]}
    for code, paths in places.items():
        for path in paths:
            result = smelt("optimize", model, "-o", output, "--report", path)
            assert result.exit_code == 2
            assert code in result.stderr
    assert model.read_bytes() == before
    assert not output.exists()


def test_a_refused_model_has_its_reasons_on_the_page(smelt, write, report, tmp_path):
    text = HEADER + "g (float[2] x) => (float[2] y) { y = Relu(x, x) }"
    result = smelt("optimize", write(text), "-o", tmp_path / "o.onnx", "--report", report)
    assert result.exit_code != 0
    assert data(report.read_text())["error"]["code"] in result.stderr


@pytest.mark.parametrize(("target", "planned"), [("c", True), ("host", True), ("onnx", False)])
def test_compile_shows_the_memory_of_targets_that_plan_it(
    smelt, write, report, tmp_path, target, planned
):
    options = ["--target", target, "-o", tmp_path / "out", "--dim", "B=2"]
    result = smelt("compile", write(), *options, "--report", report)
    assert result.exit_code == 0, result.stderr
    found = data(report.read_text())
    assert (found["memory"] is not None) == planned
    assert found["before"]["values"][found["before"]["inputs"][0]][1] == "float[2,4]"


def test_convert_shows_the_lines_of_the_source(smelt, report, tmp_path, monkeypatch):
    pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shown_net.py").write_text("def net(x):\n    return (x + 1.0) * 2.0\n")
    result = smelt(
        "convert", "shown_net:net", "--input", "f32[4]", "-o", "o.onnx", "--report", report
    )
    assert result.exit_code == 0, result.stderr
    sources = [node["source"] for node in data(report.read_text())["before"]["nodes"]]
    assert sources == [["shown_net.py:2 in net"], ["shown_net.py:2 in net"]]


def test_verify_shows_both_sides_and_their_numbers(smelt, write, report):
    other = MODEL.replace("Relu", "Abs")
    result = smelt("verify", write(), write(other, "b.onnx"), "--report", report)
    assert result.exit_code == 1
    found = data(report.read_text())
    assert not found["numbers"]["ok"]
    assert [row["ok"] for row in found["numbers"]["rows"]].count(False) >= 1
    states = [[node.get("state") for node in found[side]["nodes"]] for side in ("before", "after")]
    assert states == [[None, None, "gone"], [None, None, "new"]]


def test_bisect_shows_the_rewrite_at_fault(smelt, write, report, monkeypatch):
    from smelt import compiler

    steps = (Step(HARMLESS), Step(wrong_pass(drop_relu)))
    monkeypatch.setattr(
        compiler, "optimize_model", partial(optimize_with, compiler.optimize_model, steps)
    )
    text = HEADER + "g (float[B,4] x) => (float[B,4] y) { a = Identity(x) r = Relu(a) y = Neg(r) }"
    result = smelt("bisect", write(text), "--report", report)
    assert result.exit_code == 1
    found = data(report.read_text())
    assert found["culprit"]["rules"] == ["drop_relu"]
    assert [node["op"] for node in found["before"]["nodes"]] == ["Relu", "Neg"]
    assert [node["op"] for node in found["after"]["nodes"]] == ["Neg"]


def optimize_with(optimize, steps, model, **options):
    return optimize(model, **{**options, "pipeline": steps})


def test_bisect_of_a_right_pipeline_shows_what_it_did(smelt, write, report):
    assert smelt("bisect", write(), "--report", report).exit_code == 0
    found = data(report.read_text())
    assert found["culprit"] is None
    assert [len(found[side]["nodes"]) for side in ("before", "after")] == [3, 2]


def test_a_mismatch_is_on_the_page(smelt, write, report, tmp_path, monkeypatch):
    from smelt import compiler

    steps = (Step(wrong_pass(drop_relu)),)
    monkeypatch.setattr(
        compiler, "optimize_model", partial(optimize_with, compiler.optimize_model, steps)
    )
    options = ["-o", tmp_path / "o.onnx", "--verify", "each", "--report", report]
    assert smelt("optimize", write(), *options).exit_code == 1
    assert data(report.read_text())["error"]["code"] == "E701"


def test_time_is_told_by_phase_and_pass(smelt, write, report, tmp_path):
    smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--report", report)
    found = data(report.read_text())["spans"]
    names = {span[0] for span in found["spans"]} | {total[0] for total in found["totals"]}
    assert {"load", "optimize"} <= names
    assert all(start + took <= found["seconds"] + 1e-6 for _, start, took, *_ in found["spans"])


def test_a_batch_shows_what_became_of_each_model(smelt, write, report, tmp_path, monkeypatch):
    fails = (sys.executable, "-S", "-c", "import sys; sys.exit('no')")
    monkeypatch.setattr("smelt.batch.process.COMMAND", fails)
    options = ["--do", "optimize", "-o", tmp_path / "out", "--report", report]
    assert smelt("batch", write(), *options).exit_code == 1
    found = data(report.read_text())["batch"]
    assert found["counts"]["failed"] == 1
    assert [(model["name"], model["error"] is None) for model in found["models"]] == [
        ("m.onnx", False)
    ]


@pytest.mark.parametrize(("factor", "status"), [(2.0, 0), (3.0, 1)])
def test_compile_shows_the_numbers_also_where_they_are_wrong(
    smelt, report, tmp_path, monkeypatch, factor, status
):
    pytest.importorskip("jax")
    monkeypatch.chdir(tmp_path)
    code = "calls = []\ndef f(x):\n    calls.append(x)\n    return x * (2.0 if len(calls) == 1 else {})\n"
    (tmp_path / f"net{status}.py").write_text(code.format(factor))
    options = ["--input", "f32[B,4]", "--dim", "B=2", "--target", "c", "-o", "out"]
    result = smelt("compile", f"net{status}:f", *options, "--verify", "final", "--report", report)
    assert result.exit_code == status, result.stderr
    numbers = data(report.read_text())["numbers"]
    assert numbers["ok"] == (status == 0)
    assert [row["type"] for row in numbers["rows"]] == ["float32[2, 4]"] * 4
