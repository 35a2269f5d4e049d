"""The help of a command says what its docstring says, with lines that the terminal breaks."""

import pytest

from smelt.cli.main import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_a_paragraph_has_no_line_breaks_of_the_source(smelt, monkeypatch, name):
    monkeypatch.setattr("typer.rich_utils.MAX_WIDTH", 2000)
    monkeypatch.setenv("COLUMNS", "2000")
    shown = [" ".join(line.split()) for line in smelt(name, "--help").stdout.splitlines()]
    for paragraph in (COMMANDS[name].__doc__ or "").split("\n\n"):
        assert " ".join(paragraph.split()) in shown
