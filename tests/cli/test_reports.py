"""``--report FILE``: a page beside what a command writes anyway."""

from __future__ import annotations

import json
import re

import pytest
from small_models import HEADER


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


def test_optimize_says_what_was_verified(smelt, write, report, tmp_path):
    smelt("optimize", write(), "-o", tmp_path / "o.onnx", "--report", report, "--verify", "each")
    assert data(report.read_text())["evidence"]["mode"] == "each"


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


def test_a_report_that_cannot_be_written_is_an_error(smelt, write, tmp_path):
    result = smelt(
        "optimize", write(), "-o", tmp_path / "o.onnx", "--report", tmp_path / "no" / "r.html"
    )
    assert result.exit_code == 2
    assert "E630" in result.stderr


def test_a_refused_model_has_its_reasons_on_the_page(smelt, write, report, tmp_path):
    text = HEADER + "g (float[2] x) => (float[2] y) { y = Relu(x, x) }"
    result = smelt("optimize", write(text), "-o", tmp_path / "o.onnx", "--report", report)
    assert result.exit_code != 0
    assert data(report.read_text())["error"]["code"] in result.stderr
