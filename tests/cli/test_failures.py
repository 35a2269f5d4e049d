"""Bad requests get a coded error and a status, never a traceback; old files survive."""

import os
import sys

import pytest
from small_models import HEADER, MODEL

OLD = b"the old file"


@pytest.fixture
def destination(tmp_path):
    path = tmp_path / "out.onnx"
    path.write_bytes(OLD)
    return path


def assert_refused(result, status, code):
    assert result.exit_code == status, (result.stdout, result.stderr, result.exception)
    assert result.stderr.startswith(code), result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


TEXTS = {
    "operands of two types": (
        "g (float[2] x, int64[2] z) => (float[2] y) { y = Add(x, z) }",
        3,
        "E3",
    ),
    "no such operator": ("g (float[2] x) => (float[2] y) { y = NoSuch(x) }", 3, "E3"),
}


@pytest.mark.parametrize("case", TEXTS.values(), ids=TEXTS.keys())
def test_an_invalid_model_is_refused(smelt, write, destination, case):
    text, status, code = case
    result = smelt("optimize", write(HEADER + text), "-o", destination, "--verify", "final")
    assert_refused(result, status, code)
    assert destination.read_bytes() == OLD


@pytest.mark.parametrize("keep", [0, 1, 40, 100])
def test_a_truncated_file_is_refused(smelt, write, tmp_path, destination, keep):
    path = tmp_path / "cut.onnx"
    path.write_bytes(write().read_bytes()[:keep])
    assert_refused(smelt("optimize", path, "-o", destination), 3, "E3")
    assert destination.read_bytes() == OLD


@pytest.mark.parametrize("source", ["missing.onnx", "."])
@pytest.mark.parametrize("command", ["inspect", "bisect"])
def test_a_missing_file_or_a_folder_is_refused(smelt, tmp_path, monkeypatch, command, source):
    monkeypatch.chdir(tmp_path)
    assert_refused(smelt(command, source), 2, "E6")


@pytest.mark.parametrize("command", ["verify", "bisect", "run"])
def test_a_negative_seed_is_refused(smelt, write, command):
    models = [write()] * (2 if command == "verify" else 1)
    result = smelt(command, *models, "--seed", "-1")
    assert result.exit_code == 2
    assert "--seed" in result.stderr


BAD_ARGUMENTS = {
    "unknown pass": (["--pipeline", "no-such-pass"], "E601"),
    "pipeline syntax": (["--pipeline", "fixpoint(("], "E602"),
    "missing pipeline file": (["--pipeline", "@missing.txt"], "E606"),
    "malformed dim": (["--dim", "B"], "E636"),
    "negative dim": (["--dim", "B=-1"], "E636"),
    "dim given twice": (["--dim", "B=1", "--dim", "B=2"], "E636"),
    "unknown dim": (["--dim", "C=1", "--verify", "final"], "E633"),
}


@pytest.mark.parametrize("case", BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS.keys())
def test_bad_arguments_are_refused(smelt, write, destination, case):
    arguments, code = case
    assert_refused(smelt("optimize", write(), "-o", destination, *arguments), 2, code)
    assert destination.read_bytes() == OLD


def test_an_impossible_destination_is_refused(smelt, write, tmp_path):
    for place in (tmp_path, tmp_path / "missing" / "m.onnx"):
        assert_refused(smelt("optimize", write(), "-o", place), 2, "E6")


def test_a_destination_below_a_file_is_refused(smelt, write, destination):
    result = smelt("compile", write(), "--target", "onnx", "-o", destination)
    assert_refused(result, 2, "E6")
    assert destination.read_bytes() == OLD


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_an_unwritable_folder_is_refused(smelt, write, tmp_path):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o500)
    assert_refused(smelt("optimize", write(), "-o", folder / "m.onnx"), 2, "E6")


FUNCTIONS = ["no_such_module:f", "math:no_such_function", "math:pi"]


@pytest.mark.parametrize("reference", FUNCTIONS)
def test_a_function_that_is_none_is_refused(smelt, write, reference):
    assert_refused(smelt("verify", reference, write()), 2, "E635")


def test_two_models_from_one_standard_input_are_refused(smelt):
    assert_refused(smelt("verify", "-", "-"), 2, "E637")
    assert_refused(smelt("diff", "-", "-"), 2, "E637")


def test_a_model_and_json_on_one_standard_output_are_refused(smelt, write):
    assert smelt("optimize", write(), "-o", "-", "--json").exit_code == 2


def test_unknown_targets_and_options_are_refused(smelt, write, tmp_path):
    assert_refused(smelt("compile", write(), "--target", "no", "-o", tmp_path / "o"), 2, "E611")
    clash = smelt("compile", write(), "-o", tmp_path / "o", "--option", "opset=3")
    assert_refused(clash, 2, "E636")


def test_usage_errors_have_status_2(smelt):
    assert smelt("optimize").exit_code == 2
    assert smelt("no-such-command").exit_code == 2


def test_an_error_under_json_is_a_document(smelt, document):
    result = smelt("inspect", "missing.onnx", "--json")
    assert result.exit_code == 2
    assert document(result)["error"]["status"] == 2
    assert result.stderr == ""


def test_without_onnxruntime_verify_says_what_to_install(smelt, write, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    result = smelt("verify", write(), write(MODEL, "b.onnx"))
    assert_refused(result, 2, "E631")
    assert "pip install" in result.stderr


def test_a_mistake_of_ours_leaves_a_reproducer(smelt, write, tmp_path, monkeypatch):
    path = write()

    def fail(*arguments, **options):
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr("smelt.cli.inspect.sections", fail)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["smelt", "inspect", str(path)])
    result = smelt("inspect", path)
    assert_refused(result, 70, "E901")
    (folder,) = tmp_path.glob("smelt-reproducer-*")
    assert str(folder) in result.stderr
    assert (folder / "model.onnx").is_file()
    assert "smelt inspect model.onnx" in (folder / "repro.sh").read_text()
    assert "surprise" in (folder / "report.json").read_text()


def test_an_interrupt_has_status_130(smelt, write, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("smelt.cli.inspect.sections", interrupt)
    assert smelt("inspect", write()).exit_code == 130
