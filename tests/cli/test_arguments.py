"""What is wrong with the arguments of a command, and what shells and scripts get of it."""

import json
import os
import subprocess
import sys

import pytest

from smelt.cli.arguments import bounded_dims, find_function, parse_dims
from smelt.errors import UsageError


def call(*arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "smelt", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **environment},
    )


def test_the_package_is_a_command():
    result = call("--version")
    assert result.returncode == 0
    assert result.stdout.startswith("smelt ")


@pytest.mark.parametrize("arguments", [["optimize"], ["optimize", "--frob"], ["frobnicate"]])
def test_wrong_arguments_are_json_where_it_is_asked_for(arguments):
    result = call(*arguments, "--json")
    assert result.returncode == 2
    assert json.loads(result.stdout)["error"]["code"] == "E643"
    assert result.stderr == ""


def test_the_status_is_the_same_with_json(smelt, write):
    assert smelt("inspect", "missing.onnx", "--json").exit_code == 2
    assert smelt("inspect", write(), "--json").exit_code == 0


@pytest.mark.parametrize("variable", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_escapes_where_none_are_wanted(variable):
    for arguments in (["optimize"], ["--help"]):
        result = call(*arguments, FORCE_COLOR="1", **variable)
        assert "\x1b" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("shell", "line", "found"),
    [
        ("bash", "smelt compile m.onnx --target h", "host"),
        ("zsh", "smelt optimize m.onnx --pipeline simplify,fuse-gel", "simplify,fuse-gelu-exact"),
        ("fish", "smelt explain E70", "E701"),
        ("bash", "smelt config opt", "optimize"),
    ],
)
def test_shells_complete_names(smelt, shell, line, found):
    words = line.split(" ")
    environment = {
        "_SMELT_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TYPER_COMPLETE_ARGS": line,
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    assert found in smelt(**environment).stdout


def test_a_process_completes_commands():
    environment = {"COMP_WORDS": "smelt expl", "COMP_CWORD": "1"}
    assert "explain" in call(_SMELT_COMPLETE="complete_bash", **environment).stdout


@pytest.mark.parametrize("word", ["maybe", "yes", "Off"])
def test_a_word_that_may_mean_false_is_refused(smelt, word):
    result = smelt("convert", "builtins:abs", "-o", "x.onnx", "--static", f"flag={word}")
    assert result.exit_code == 2
    assert result.stderr.startswith("E636")
    assert "flag=true or flag=false" in result.stderr


def test_names_that_begin_alike_are_proposed(smelt):
    result = smelt("explain", "fuse-gelu")
    assert "did you mean 'fuse-gelu-exact' or " in result.stderr


def test_a_program_of_this_process_needs_no_folder_and_runs(smelt, write, tmp_path):
    result = smelt("compile", write(), "--target", "host")
    assert result.exit_code == 0, result.stderr
    assert "one run took" in result.stdout
    assert "at B=1" in result.stdout
    assert smelt("compile", write(), "--target", "host", "-o", tmp_path / "out").exit_code == 0
    assert (tmp_path / "out" / "program.onnx").exists()


def test_a_target_with_files_needs_a_folder(smelt, write):
    result = smelt("compile", write(), "--target", "onnx")
    assert result.exit_code == 2
    assert "-o FOLDER" in result.stderr


@pytest.mark.parametrize(
    ("given", "meant"), [("net.py:model", "net:model"), ("models/net.py", "models.net:FUNCTION")]
)
def test_the_file_of_a_module_is_told_as_a_module(given, meant):
    with pytest.raises(UsageError) as caught:
        find_function(given)
    assert caught.value.code == "E635"
    assert f"name the module, not its file: {meant}" in str(caught.value)


def test_a_file_that_is_missing_is_told_as_such():
    with pytest.raises(UsageError, match="there is no file and no Python module 'net"):
        find_function("net.jaxexport")


@pytest.mark.parametrize("command", ["convert", "compile"])
def test_types_of_inputs_that_are_no_options_name_the_option(smelt, command):
    result = smelt(command, "package:function", "f32[B,3]", "i32[]", "-o", "x", "--json")
    assert result.exit_code == 2
    told = json.loads(result.stdout)["error"]["what"]
    assert told.endswith("--input 'f32[B,3]' --input 'i32[]'")
    other = smelt("inspect", "a.onnx", "f32[B,3]", "--json")
    assert "--input" not in json.loads(other.stdout)["error"]["what"]


def test_a_module_that_needs_a_missing_package_names_it(tmp_path, monkeypatch):
    (tmp_path / "needy.py").write_text("import surely_absent.part\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        find_function("needy:model")
    assert caught.value.fix == "pip install surely_absent"
    assert "imports the package surely_absent" in caught.value.why
    with pytest.raises(UsageError) as caught:
        find_function("nowhere_at_all.part:model")
    assert "package.module:function" in caught.value.fix


DIMS = {
    "B=1..16": {"B": (1, 16)},
    "B=3..7 S=8 T=2..2": {"B": (3, 7), "S": 8, "T": (2, 2)},
    "B=8": {"B": 8},
    "": {},
}


@pytest.mark.parametrize("given", DIMS)
def test_dims_have_bounds_or_one_size(given):
    assert bounded_dims(given.split()) == DIMS[given]


WRONG_DIMS = {
    "B=1..4 B=1..8": "--dim B is given twice",
    "B=1..4 B=3": "--dim B is given twice",
    "B=3 B=1..4": "--dim B is given twice",
    "B=..4": "--dim 'B=..4'",
    "B": "--dim 'B'",
    "=3": "--dim '=3'",
    "B=1,2": "--dim B has several sizes",
}


@pytest.mark.parametrize("given", WRONG_DIMS)
def test_dims_of_another_form_are_refused(given):
    with pytest.raises(UsageError, match=WRONG_DIMS[given]) as caught:
        bounded_dims(given.split())
    assert caught.value.code == "E636"
    assert caught.value.fix


def test_sizes_of_a_dim_go_into_one_option():
    assert parse_dims(["B=1,3", "S=8"]) == {"B": (1, 3), "S": (8,)}
    assert parse_dims(None) == {}
    for wrong in (["B=1", "B=2"], ["B=1..2"], ["B=-1"], ["B="]):
        with pytest.raises(UsageError) as caught:
            parse_dims(wrong)
        assert caught.value.code == "E636"
