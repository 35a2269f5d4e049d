"""The help of a command is its docstring and its options, in plain text within 80 columns."""

import re
import shlex
from inspect import cleandoc

import pytest
import typer

from smelt.cli.main import COMMANDS, _with_value, app, split_at_dashes

EXAMPLE = re.compile(r"^Example: smelt (.*)$", re.MULTILINE)


def group():
    return typer.main.get_command(app)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_holds_the_docstring_and_fits_80_columns(smelt, name):
    shown = smelt(name, "--help", COLUMNS="80").stdout
    assert max(map(len, shown.splitlines())) <= 80
    words = " ".join(shown.split())
    for paragraph in (COMMANDS[name].__doc__ or "").split("\n\n"):
        assert " ".join(paragraph.split()) in words


@pytest.mark.parametrize("name", COMMANDS)
def test_options_name_their_values_and_flags_have_none(smelt, name):
    shown = smelt(name, "--help", COLUMNS="80").stdout
    assert not re.search(r"<\w", shown)
    for param in group().commands[name].params:
        assert param.help, f"{param.opts} has no description"
        assert re.fullmatch(r"[A-Z].*\.", param.help), param.help


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_of_a_command_is_one_that_it_takes(name):
    [line] = EXAMPLE.findall(cleandoc(COMMANDS[name].__doc__ or ""))
    command, *words = shlex.split(line)
    assert command == name
    own, _ = split_at_dashes([_with_value(word) for word in words])
    group().commands[name].make_context(name, own)


def test_the_list_of_commands_shortens_no_sentence(smelt):
    shown = smelt("--help", COLUMNS="80").stdout
    assert "..." not in shown.partition("Commands:")[2]
    assert smelt().stdout == smelt("--help").stdout
