"""Plug-ins are listed with what is wrong with them, and left out where nobody wants them."""

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest
from packages import installed

from smelt.passes import pipeline, registry
from smelt.targets import registry as targets

PASS = """
from smelt.ir.pattern import op, var
from smelt.ir.rule import rule
from smelt.passes.base import rule_pass

@rule(op("Cos", op("Neg", var("x"))))
def whole(m, b):
    return b.op("Cos", m["x"])

mine = rule_pass("mine", "A pass.", [whole])
"""
MARKED = "import pathlib\npathlib.Path(__file__).with_suffix('.imported').touch()\nmine = None\n"
GROUPS = ("passes", "targets", "lowerings", "operators")


@pytest.fixture
def package(tmp_path):
    """Install a package of one module for the test; returns its name."""

    with ExitStack() as stack:
        stack.callback(pipeline._stage.cache_clear)

        def install(name, code, points):
            stack.enter_context(installed(tmp_path, name, code, points))
            for known in (registry.PASSES, targets.TARGETS):
                stack.enter_context(known.refilled())
            pipeline._stage.cache_clear()

        yield install


@pytest.fixture
def states(smelt, document):
    def read(*arguments):
        result = smelt("plugins", "--json", *arguments)
        assert result.exit_code == 0, result.stderr
        return {item["name"]: item for item in document(result)["plugins"]}

    return read


def test_none_is_none(smelt, document):
    assert document(smelt("plugins", "--json"))["plugins"] == []
    assert "no installed package" in smelt("plugins").stderr


def test_a_working_plugin_is_ok(package, states, smelt):
    package("good_package", PASS, "[smelt.passes]\nmy-cos = good_package:mine\n")
    assert states()["my-cos"] == {
        "package": "good_package",
        "version": "1.0",
        "group": "smelt.passes",
        "name": "my-cos",
        "state": "ok",
        "error": "",
        "place": "",
    }
    shown = smelt("plugins").stdout
    assert "good_package" in shown
    assert "passes" in shown


BROKEN = {
    "raise ValueError('first\\nsecond')": ("ValueError: first", 1),
    "x = 1\nimport no_such_module": ("ModuleNotFoundError: No module named 'no_such_module'", 2),
    "x = (": ("SyntaxError: '(' was never closed", 1),
    "import sys\nsys.exit('bye')": ("SystemExit: bye", 2),
}


@pytest.mark.parametrize("code", BROKEN)
@pytest.mark.parametrize("group", GROUPS)
def test_load_errors_show_their_first_line_and_place(package, states, tmp_path, group, code):
    error, line = BROKEN[code]
    package("broken_package", code, f"[smelt.{group}]\nbad = broken_package:mine\n")
    found = states()["bad"]
    assert (found["state"], found["error"]) == ("error", error)
    assert found["place"] == f"{tmp_path / 'broken_package.py'}:{line}"


def test_missing_names_and_wrong_types_are_errors(package, states):
    points = "".join(f"[smelt.{group}]\nof-{group} = odd_package:{{}}\n" for group in GROUPS[:2])
    points += "[smelt.operators]\nof-operators = odd_package:mine\n"
    package("odd_package", "mine = 3", points.format("mine", "nothing"))
    found = states()
    assert found["of-passes"]["error"] == "odd_package:mine is not a Pass"
    assert found["of-targets"]["error"].startswith("AttributeError")
    assert found["of-operators"]["error"].startswith("E641")


@pytest.mark.parametrize(("group", "name"), [("passes", "fuse-gelu-exact"), ("targets", "onnx")])
def test_a_name_that_is_taken_is_an_error(package, states, group, name):
    package("greedy", PASS, f"[smelt.{group}]\n{name} = greedy:mine\n")
    found = states()[name]
    assert found["state"] == "error"
    assert "name" in found["error"] or "not a Target" in found["error"]


COMMANDS = (
    ["passes"],
    ["targets"],
    ["plugins"],
    ["optimize", "m.onnx", "-o", "o.onnx"],
    ["compile", "m.onnx", "--target", "c", "--dim", "B=1", "-o", "out"],
    ["explain", "fuse-swish"],
)
PROBE = """
import sys
from smelt.cli.main import app
for command in {commands!r}:
    try:
        app(args=[*command, *{flags!r}], prog_name="smelt")
    except SystemExit as done:
        assert not done.code, (command, done.code)
if {flags!r}:
    from smelt.operators.registry import all_operators
    from smelt.frontends.jax.registry import RULES
    assert all_operators() and RULES
"""


@pytest.mark.parametrize("how", ["flag", "variable", "file", "not at all"])
def test_without_plugins_nothing_of_them_is_imported(write, tmp_path, how):
    write()
    environment = {k: v for k, v in os.environ.items() if not k.startswith("SMELT_")}
    if how == "variable":
        environment["SMELT_NO_PLUGINS"] = "1"
    if how == "file":
        (tmp_path / "smelt.toml").write_text("no-plugins = true\n")
    points = "".join(f"[smelt.{group}]\nbad = marked_package:mine\n" for group in GROUPS)
    commands = COMMANDS if how == "flag" else COMMANDS[:1]
    code = PROBE.format(commands=commands, flags=["--no-plugins"] if how == "flag" else [])
    with installed(tmp_path, "marked_package", MARKED, points):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
        result = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "marked_package.imported").exists() == (how == "not at all")


def test_plugins_are_listed_without_being_imported(package, smelt, states, tmp_path):
    package("marked_package", MARKED, "[smelt.passes]\nbad = marked_package:mine\n")
    assert states("--no-plugins")["bad"]["state"] == "off"
    assert not (tmp_path / "marked_package.imported").exists()


def test_a_pass_that_was_left_out_is_told(package, smelt, write):
    package("good_package", PASS, "[smelt.passes]\nmy-cos = good_package:mine\n")
    arguments = ["optimize", write(), "-o", "-", "--pipeline", "my-cos"]
    result = smelt(*arguments, "--no-plugins")
    assert result.exit_code == 2
    assert "--no-plugins" in result.stderr


def test_a_target_may_have_the_name_of_a_pass(package, states):
    code = (
        "from smelt.targets.base import Target\n"
        "mine = Target(name='fuse_gelu_exact', summary='', emit=lambda plan: None)\n"
    )
    package("namesake", code, "[smelt.targets]\nfuse_gelu_exact = namesake:mine\n")
    assert states()["fuse_gelu_exact"]["state"] == "ok"
