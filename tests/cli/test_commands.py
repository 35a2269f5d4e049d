"""Each command does its job: data on standard output, words for people on standard error."""

import sys

import onnx
import onnx_ir
import pytest
from small_models import HEADER, MODEL

OTHER = MODEL.replace("Relu(h)", "Neg(h)")


def test_inspect_shows_the_interface_and_counts(smelt, write, document):
    result = smelt("inspect", write())
    assert result.exit_code == 0
    assert "float[B,4]" in result.stdout
    facts = document(smelt("inspect", write(), "--json"))
    assert facts["inputs"] == [{"name": "x", "type": "float[B,4]"}]
    assert facts["operators"] == {"Identity": 1, "MatMul": 1, "Relu": 1}
    assert (facts["parameters"], facts["parameter_bytes"]) == (16, 64)


def test_inspect_reads_standard_input(smelt, write):
    assert "MatMul" in smelt("inspect", "-", stdin=write().read_bytes()).stdout


def test_inspect_prints_a_test_of_the_structure(smelt, write, document):
    result = smelt("inspect", write(), "--snippet")
    assert result.exit_code == 0, result.stderr
    assert '"Identity:Bx4 -> MatMul:Bx4 -> Relu:Bx4",' in result.stdout
    model = onnx_ir.load(write())
    exec(compile(result.stdout, "snippet", "exec"), {"model": model})
    facts = document(smelt("inspect", write(), "--snippet", "--json"))
    assert facts["snippet"] == result.stdout.rstrip("\n")


def test_verify_same_and_different(smelt, write, document):
    a, b = write(), write(OTHER, "other.onnx")
    same = smelt("verify", a, a, "--dim", "B=1,3")
    assert same.exit_code == 0
    assert "B=3" in same.stdout
    different = smelt("verify", a, b, "--json")
    assert different.exit_code == 1
    assert document(different)["ok"] is False
    assert smelt("verify", a, b, "--atol", "1e9").exit_code == 0


def test_optimize_writes_a_model_that_computes_the_same(smelt, write, tmp_path, document):
    a, b = write(), tmp_path / "out.onnx"
    result = smelt("optimize", a, "-o", b, "--verify", "each", "--stats")
    assert result.exit_code == 0, result.stderr
    assert result.stdout == ""
    assert "nodes became" in result.stderr
    assert smelt("verify", a, b).exit_code == 0
    assert "verified after each of " in result.stderr
    report = document(smelt("optimize", a, "-o", b, "--json"))
    assert report["nodes"][0] == 3
    assert report["evidence"] is None
    report = document(smelt("optimize", a, "-o", b, "--verify", "final", "--json"))
    assert (report["evidence"]["mode"], report["evidence"]["worst"]["ulp"]) == ("final", 0)


def test_optimize_takes_liberties_only_on_request(smelt, write, tmp_path):
    text = f"{HEADER} g (float[B,4] x) => (float[B,4] y) <float c = {{3}}> {{ y = Div(x, c) }}"
    source, result = write(text), tmp_path / "out.onnx"
    for flags, operator in ((), "Div"), (("--fast-math", "--assume-finite"), "Mul"):
        assert smelt("optimize", source, "-o", result, *flags).exit_code == 0
        assert [node.op_type for node in onnx.load(result).graph.node] == [operator]


def test_optimize_keeps_the_opset_on_request(smelt, write, tmp_path):
    text = (
        '<ir_version: 8, opset_import: ["": 17]> g (float[B,4] x) => (float[B,4] y) '
        "<float r = {1.4142135}, float one = {1}, float half = {0.5}> "
        "{ d = Div(x, r) e = Erf(d) a = Add(e, one) m = Mul(x, a) y = Mul(m, half) }"
    )
    source, result = write(text), tmp_path / "out.onnx"
    for flags, opset in ((), 20), (("--keep-opset",), 17), (("--opset", "18"), 18):
        assert smelt("optimize", source, "-o", result, *flags).exit_code == 0
        assert onnx.load(result).opset_import[0].version == opset


def test_an_opset_that_rules_do_not_know_is_raised_and_the_line_says_why(smelt, write, tmp_path):
    source = write('<ir_version: 8, opset_import: ["": 9]> g (float[B,4] x) => (y) { y = Neg(x) }')
    result = smelt("optimize", source, "-o", tmp_path / "out.onnx", "--keep-opset")
    assert result.exit_code == 0
    assert "opset 9 -> 13 (the lowest that rules know)" in result.stderr


def test_optimize_streams(smelt, write):
    result = smelt("optimize", "-", "-o", "-", stdin=write().read_bytes())
    assert result.exit_code == 0, result.stderr
    onnx.checker.check_model(onnx.load_model_from_string(result.stdout_bytes))


def test_optimize_records_provenance_on_request(smelt, write, tmp_path):
    destination = tmp_path / "out.onnx"
    assert smelt("optimize", write(), "-o", destination, "--provenance").exit_code == 0


def test_optimize_takes_a_pipeline_from_a_file(smelt, write, tmp_path):
    (tmp_path / "p.txt").write_text("cleanup  # only this\n")
    result = smelt(
        "optimize", write(), "-o", tmp_path / "o.onnx", "--pipeline", f"@{tmp_path}/p.txt"
    )
    assert result.exit_code == 0, result.stderr


def test_bisect_of_a_right_pipeline_finds_nothing(smelt, write, document):
    result = smelt("bisect", write(), "--json")
    assert result.exit_code == 0, result.stderr
    assert document(result)["culprit"] is None


def test_compile_for_onnx_writes_files(smelt, write, tmp_path, document):
    result = smelt("compile", write(), "--target", "onnx", "-o", tmp_path / "out", "--json")
    assert result.exit_code == 0, result.stderr
    for path in document(result)["files"]:
        assert (tmp_path / path).is_file()


def test_compile_for_c_needs_sizes(smelt, write, tmp_path):
    refused = smelt("compile", write(), "--target", "c", "-o", tmp_path / "out")
    assert refused.exit_code == 4
    assert not (tmp_path / "out").exists()
    result = smelt("compile", write(), "--target", "c", "-o", tmp_path / "out", "--dim", "B=2")
    assert result.exit_code == 0, result.stderr
    assert any(path.suffix == ".c" for path in (tmp_path / "out").iterdir())


def test_passes_and_targets_are_listed(smelt, document):
    names = [item["name"] for item in document(smelt("passes", "--json"))["passes"]]
    assert names == sorted(names)
    assert smelt("passes", "--markdown").stdout.startswith("| pass |")
    targets = {item["name"]: item for item in document(smelt("targets", "--json"))["targets"]}
    assert targets["c"]["dynamic_dims"] is False
    assert "onnx" in smelt("targets").stdout


@pytest.mark.parametrize("topic", ["E701", "e701", "fuse-swish", "fuse_swish"])
def test_explain_knows_codes_and_passes(smelt, topic):
    result = smelt("explain", topic)
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) > 3


def test_explain_suggests_what_was_meant(smelt):
    result = smelt("explain", "fuse-swich")
    assert result.exit_code == 2
    assert "fuse-swish" in result.stderr


def test_functions_are_found_from_the_current_folder(smelt, write, tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("import numpy as np\n\n\ndef f(x):\n    return np.exp(x)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    model = write(HEADER + "g (float[B] x) => (float[B] y) { y = Exp(x) }")
    assert smelt("verify", "mine:f", model).exit_code == 0


def test_convert_traces_verifies_and_saves(smelt, tmp_path, monkeypatch):
    (tmp_path / "traced.py").write_text(
        "import jax.numpy as jnp\n\n\ndef f(x, y):\n    return jnp.tanh(x) @ y\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    inputs = ("--input", "f32[B,4]", "--input", "f32[4,2]")
    result = smelt("convert", "traced:f", *inputs, "-o", tmp_path / "f.onnx")
    assert result.exit_code == 0, result.stderr
    assert smelt("verify", "traced:f", tmp_path / "f.onnx").exit_code == 0


def test_json_has_no_infinity(smelt, write, document):
    nan = HEADER + "g (float[B] x) => (float[B] y) { z = Sub(x, x)  y = Div(z, z) }"
    zero = HEADER + "g (float[B] x) => (float[B] y) { y = Sub(x, x) }"
    result = smelt("verify", write(nan, "a.onnx"), write(zero, "b.onnx"), "--json")
    assert result.exit_code == 1
    assert "Infinity" not in result.stdout
    assert document(result)["worst"]["ulp"] == "inf"
