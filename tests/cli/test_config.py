"""Settings from files and the environment: which one holds, what is refused, what is shown."""

import re
from pathlib import Path
from typing import get_type_hints

import pytest
from typer.models import OptionInfo

from smelt.cli.main import COMMANDS
from smelt.cli.settings.options import options_of


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A folder of its own, with nothing set."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def settings(smelt, document):
    """The settings of a command as ``{name: (value, from)}``."""

    def read(command, *arguments):
        found = document(smelt(*arguments, "config", command, "--json"))["settings"]
        return {item["name"]: (item["value"], item["from"]) for item in found}

    return read


def test_nothing_set_is_the_default(settings):
    found = settings("optimize")
    assert found["verify"] == ("off", "default")
    assert found["pipeline"] == ("default", "default")
    assert {source for _, source in found.values()} == {"default"}


def test_each_source_wins_over_the_next(here, settings, smelt, write, document, monkeypatch):
    def evidence(*flags):
        report = document(smelt("optimize", model, "-o", "o.onnx", "--json", *flags))
        return (report["evidence"] or {"mode": "off"})["mode"]

    model = write()
    assert evidence() == "off"
    (here / "pyproject.toml").write_text('[tool.smelt]\nverify = "each"\n')
    assert settings("optimize")["verify"] == ("each", "pyproject.toml")
    assert evidence() == "each"
    (here / "smelt.toml").write_text('verify = "final"\n')
    assert settings("optimize")["verify"] == ("final", "smelt.toml")
    assert evidence() == "final"
    (here / "smelt.toml").write_text('verify = "each"\n[optimize]\nverify = "off"\n')
    assert evidence() == "off"
    monkeypatch.setenv("SMELT_VERIFY", "final")
    assert evidence() == "final"
    monkeypatch.setenv("SMELT_OPTIMIZE_VERIFY", "each")
    assert settings("optimize")["verify"] == ("each", "environment")
    assert evidence() == "each"
    assert evidence("--verify", "off") == "off"
    assert evidence("--no-config") == "each"


def test_no_config_leaves_files_out(here, settings, monkeypatch):
    (here / "smelt.toml").write_text("[optimize]\nstats = true\n")
    assert settings("optimize")["stats"] == (True, "smelt.toml")
    assert settings("optimize", "--no-config")["stats"] == (False, "default")
    monkeypatch.setenv("SMELT_NO_CONFIG", "yes")
    assert settings("optimize")["stats"] == (False, "default")
    monkeypatch.setenv("SMELT_NO_CONFIG", "0")
    assert settings("optimize")["stats"] == (True, "smelt.toml")


def test_the_nearest_folder_holds_alone(here, settings, monkeypatch):
    below = here / "a" / "b"
    below.mkdir(parents=True)
    (here / "smelt.toml").write_text("[optimize]\nstats = true\nopset = 20\n")
    (here / "a" / "pyproject.toml").write_text("[tool.other]\nx = 'smelt'\n")
    monkeypatch.chdir(below)
    assert settings("optimize")["opset"] == (20, "smelt.toml")
    (here / "a" / "pyproject.toml").write_text("[tool.smelt.optimize]\nopset = 21\n")
    assert settings("optimize")["opset"] == (21, "pyproject.toml")
    assert settings("optimize")["stats"] == (False, "default")


def test_a_flag_that_a_file_turns_on_is_turned_off_again(here, smelt, write):
    (here / "smelt.toml").write_text("[optimize]\nstats = true\n")
    model = write()
    assert "rewrites" in smelt("optimize", model, "-o", "o.onnx").stderr
    assert "rewrites" not in smelt("optimize", model, "-o", "o.onnx", "--no-stats").stderr


def test_repeatable_options_are_tables_arrays_and_words(here, settings, smelt, write, monkeypatch):
    (here / "smelt.toml").write_text('dim = { B = [1, 3], "seq len" = 2 }\n')
    assert settings("verify")["dim"][0] == ["B=1,3", "seq len=2"]
    (here / "smelt.toml").write_text(
        '[compile]\ntarget = "c"\ndim = ["B=2"]\noption.name = "mine"\n'
    )
    result = smelt("compile", write(), "-o", here / "out")
    assert result.exit_code == 0, result.stderr
    assert (here / "out" / "mine.c").exists()
    monkeypatch.setenv("SMELT_INPUT", "'f32[B, 4]' y=f32[2]")
    assert settings("convert")["input"] == (["f32[B, 4]", "y=f32[2]"], "environment")


def test_a_pipeline_file_is_beside_the_settings(here, smelt, write, document, monkeypatch):
    (here / "passes.txt").write_text("no-such-pass\n")
    (here / "smelt.toml").write_text('pipeline = "@passes.txt"\n')
    (here / "deep").mkdir()
    monkeypatch.chdir(here / "deep")
    result = smelt("optimize", write(), "-o", "o.onnx", "--json")
    assert document(result)["error"]["code"] == "E601"


WRONG = {
    "verfy = 'each'": ("E681", "'verify'"),
    "[optimise]\nverify = 'each'": ("E681", "'optimize'"),
    "[optimize]\nkeep_opset = true": ("E681", "'keep-opset'"),
    "[optimize]\noutput = 'x.onnx'": ("E681", "command line only"),
    "json = true": ("E681", "command line only"),
    "optimize = 3": ("E681", "table"),
    "[explain]\nx = 1": ("E681", "explain"),
    "verify = 'sometimes'": ("E682", "off or final or each"),
    "verify = 'eahc'": ("E682", "'each'"),
    "[optimize]\nopset = '17'": ("E682", "a whole number"),
    "[optimize]\nopset = true": ("E682", "a whole number"),
    "[optimize]\nstats = 1": ("E682", "true or false"),
    "[verify]\nrtol = 'x'": ("E682", "a number"),
    "dim = 'B=1'": ("E682", "an array"),
    "dim = [1]": ("E682", "an array"),
    "dim.B = 1979-05-27": ("E682", "an array"),
    "[optimize\n": ("E680", "line 1"),
    '"\\u001b[31m" = 1': ("E681", "\\x1b[31m"),
    "x = 1\nx = 2": ("E680", "cannot read"),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_settings_in_a_file_are_refused_with_their_place(here, smelt, write, text):
    code, words = WRONG[text]
    (here / "smelt.toml").write_text(text)
    result = smelt("optimize", write(), "-o", here / "o.onnx")
    assert result.exit_code == 2
    assert result.stderr.startswith(code), result.stderr
    assert words in result.stderr
    assert str(here / "smelt.toml") in result.stderr
    assert not (here / "o.onnx").exists()
    assert smelt("config").stderr.startswith(code)
    assert "\x1b" not in result.stderr


def test_a_wrong_file_keeps_nobody_from_help(here, smelt, write, document):
    (here / "smelt.toml").write_bytes(b"\xff\xfe")
    assert document(smelt("inspect", write(), "--json"))["error"]["code"] == "E680"
    assert smelt("optimize", "--help").exit_code == 0
    assert smelt("explain", "E680").exit_code == 0
    assert smelt("--version").exit_code == 0
    assert smelt("inspect", write(), "--no-config").exit_code == 0


def test_a_table_that_is_none_is_refused(here, smelt, write):
    (here / "pyproject.toml").write_text("[tool]\nsmelt = 1\n")
    assert smelt("inspect", write()).stderr.startswith("E680")


@pytest.mark.parametrize(
    ("name", "value"),
    [("SMELT_VERIFY", "maybe"), ("SMELT_OPSET", "x"), ("SMELT_NO_CONFIG", "2"), ("SMELT_DIM", "'")],
)
def test_a_wrong_variable_is_named(smelt, write, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    result = smelt("optimize", write(), "-o", "o.onnx")
    assert result.exit_code == 2
    assert result.stderr.startswith("E682")
    assert f"at    {name}" in result.stderr


def test_a_misspelled_variable_is_warned_of_and_others_are_not(smelt, write, monkeypatch, document):
    monkeypatch.setenv("SMELT_OPTIMIZE_VERIFI", "each")
    monkeypatch.setenv("SMELT_SPECIAL_THING_OF_MINE", "1")
    monkeypatch.setenv("SMELT_CACHE", "/somewhere")
    with pytest.warns(UserWarning, match="SMELT_OPTIMIZE_VERIFY") as caught:
        smelt("optimize", write(), "-o", "o.onnx")
    assert len(caught) == 1
    with pytest.warns(UserWarning, match="SMELT_OPTIMIZE_VERIFY"):
        shown = smelt("config", "--json")
    unknown = document(shown)["unknown_variables"]
    assert unknown == ["SMELT_OPTIMIZE_VERIFI", "SMELT_SPECIAL_THING_OF_MINE"]
    monkeypatch.delenv("SMELT_OPTIMIZE_VERIFI")
    assert "SMELT_SPECIAL_THING_OF_MINE is no setting" in smelt("config").stderr


def test_config_shows_places(here, smelt, monkeypatch):
    (here / "smelt.toml").write_text("with-weights = true\n[optimize]\nopset = 20\n")
    monkeypatch.setenv("SMELT_COMPILE_TARGET", "host")
    shown = smelt("config").stdout
    assert f"{here / 'smelt.toml'}: optimize.opset" in shown
    assert "SMELT_COMPILE_TARGET" in shown
    assert f"{here / 'smelt.toml'}: with-weights" in shown
    assert "optimize.verify" not in smelt("config", "compile").stdout
    result = smelt("config", "compil")
    assert result.exit_code == 2
    assert "'compile'" in result.stderr


def test_a_reproducer_replays_with_the_settings(here, smelt, write, monkeypatch):
    model = write()
    arguments = ["optimize", str(model), "-o", "o.onnx", "--no-stats"]
    (here / "smelt.toml").write_text("[optimize]\nstats = true\nkeep-opset = true\ndim = ['B=2']\n")
    monkeypatch.setattr("tempfile.tempdir", str(here))
    monkeypatch.setattr("sys.argv", ["smelt", *arguments])
    monkeypatch.setattr("smelt.cli.optimize.write_model", lambda *_, **__: 1 / 0)
    result = smelt(*arguments)
    assert result.exit_code == 70
    [script] = here.glob("smelt-reproducer-*/repro.sh")
    assert "--no-stats --dim=B=2 --keep-opset" in script.read_text()


def test_a_folder_that_is_gone_and_one_that_may_not_be_looked_into_have_no_files(
    here, smelt, monkeypatch
):
    gone = here / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert smelt("config").exit_code == 0
    monkeypatch.chdir(here)

    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.is_file", refused)
    assert smelt("config").exit_code == 0


def test_the_example_of_the_guide_is_right(here, settings):
    guide = (Path(__file__).parents[2] / "docs" / "config.md").read_text()
    [example] = re.findall(r"^```toml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    (here / "smelt.toml").write_text(example)
    optimize, compiled = settings("optimize"), settings("compile")
    assert optimize["verify"] == ("final", "smelt.toml")
    assert optimize["pipeline"][0] == f"@{here / 'passes.txt'}"
    assert compiled["dim"][0] == ["B=1", "S=1,128"]
    assert compiled["option"][0] == ["name=my_model"]


READ = {"pipeline", "inputs", "labels"}
"""Options that name a file to read: arrays and the text of a pipeline."""


def test_no_file_of_settings_says_what_is_written_run_or_trusted():
    """An option that names a file, a command or a machine is not for files unless it only reads."""
    words = ("FILE", "FOLDER", "PATH", "CMD", "COMMAND", "ADDRESS")
    for function in COMMANDS.values():
        hints = get_type_hints(function, include_extras=True)
        risky = {
            name
            for name, hint in hints.items()
            for extra in getattr(hint, "__metadata__", ())
            if isinstance(extra, OptionInfo) and any(w in (extra.metavar or "") for w in words)
        }
        settable = {
            option.parameter for option in options_of("x", function) if option.name not in READ
        }
        assert risky & settable == set(), "list it in PER_RUN of cli/settings/options.py"
