"""Colours: written to terminals, unless NO_COLOR or ``--color`` says otherwise."""

import io
import re
from contextvars import copy_context

import pytest
from small_models import MODEL

from smelt.cli.layout import table
from smelt.cli.terminal import color, is_coloured, painted_diff, painted_error

ESCAPE = re.compile(r"\x1b\[\d+m")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(autouse=True)
def plain(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize(
    ("when", "stream", "variables", "colours"),
    [
        ("auto", Terminal, {}, True),
        ("auto", io.StringIO, {}, False),
        ("auto", Terminal, {"NO_COLOR": "1"}, False),
        ("auto", Terminal, {"NO_COLOR": ""}, True),  # no-color.org: only if it is not empty
        ("auto", Terminal, {"TERM": "dumb"}, False),
        ("always", io.StringIO, {"NO_COLOR": "1"}, True),
        ("never", Terminal, {}, False),
    ],
)
def test_the_option_wins_over_the_variable_over_the_terminal(
    monkeypatch, when, stream, variables, colours
):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    def coloured():
        color.set(when)
        return is_coloured(stream())

    assert copy_context().run(coloured) is colours


def test_colours_change_nothing_but_the_colours():
    diff = "@@ -1 +1 @@\n-  y = Relu (x)\n+  y = Neg (x)\n   z = Abs (y)\n"
    error = "E401 a dim has no size\n  at    'x'\n  why   it is E402\n  fix   --dim B=1\n"
    for paint, text in ((painted_diff, diff), (painted_error, error)):
        painted = paint(text, Terminal())
        assert ESCAPE.sub("", painted) == text != painted
        assert paint(text, io.StringIO()) == text
    assert painted_error(error, Terminal()).count("\x1b[31m") == 1  # E402 is not the code


def test_a_header_is_bold_and_rows_are_not():
    header, row = table([(1, "a")], ("n", "name"), stream=Terminal()).splitlines()
    assert header.startswith("\x1b[1m")
    assert not ESCAPE.search(row)


@pytest.mark.parametrize("where", [0, 4])
def test_the_option_stands_before_or_behind_the_command(smelt, write, where):
    words = ["diff", write(), write(MODEL.replace("Relu(h)", "Neg(h)"), "b.onnx"), "--stat"]
    for when, found in (("always", True), ("never", False)):
        given = [*words[:where], "--color", when, *words[where:]]
        assert bool(ESCAPE.search(smelt(*given).stdout)) is found
    given = [*words[:where], "--color=always", *words[where:]]
    assert ESCAPE.search(smelt(*given).stdout)
    assert ESCAPE.search(smelt(*words, SMELT_COLOR="always").stdout)
    assert not ESCAPE.search(smelt(*words, "--color", "never", SMELT_COLOR="always").stdout)


def test_colours_of_an_unknown_name_are_refused(smelt):
    result = smelt("passes", "--color", "pink")
    assert result.exit_code == 2
    assert "'pink' is not a value of --color" in result.stderr


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("optimze", "a.onnx"), ("no such command 'optimze'", "did you mean 'optimize'?")),
        (("verify", "a.onnx"), ("missing argument 'B'", "smelt verify [OPTIONS] A B")),
        (("verify", "a", "b", "--dmi", "3"), ("no such option: --dmi", "--dim")),
        (("verify", "a", "b", "--seed", "x"), ("'--seed'", "`smelt verify --help`")),
        (("inspect", "no.onnx"), ("E609", "smelt explain E609")),
    ],
)
def test_mistakes_of_the_command_line_look_like_all_errors(smelt, words, says):
    result = smelt(*words)
    assert result.exit_code == 2
    assert re.match(r"E6\d\d \S", result.stderr)
    for text in says:
        assert text in result.stderr
    assert result.stderr.splitlines()[-1].startswith("  see   smelt explain E6")
