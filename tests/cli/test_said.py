"""Commands say of small models what ``said.txt`` records, which is read when an entry changes.

A row, ``inspect a.onnx; diff a.onnx b.onnx <- opset 20: (float[2] x) => ... && opset 21: ...``, has
the commands, and the models ``a.onnx`` and ``b.onnx`` that they read. Its entry has for each
command the status, the first line that it prints, how many there are, a digest of them, and the files that
it writes.
``PYTHONPATH=src:tests python tests/cli/test_said.py`` writes the entries again.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import tempfile
import warnings
from contextvars import copy_context
from pathlib import Path

import onnx
import pytest
from recorded import digest, parsed, rows, write
from typer.testing import CliRunner

from smelt.cli.main import app
from smelt.distribution import VERSION
from smelt.frontends.onnx.save import save
from smelt.operators.registry import OPERATORS

TABLE = Path(__file__).with_name("said.txt")
PLAIN = {"TERM": "dumb", "COLUMNS": "100", "SMELT_HOST_ENGINE": "numpy"}

UNSTABLE = re.compile(
    rf"{re.escape(VERSION)}|{re.escape(onnx.__version__)}"
    r"|\d+(\.\d+)?(e-?\d+)? ?(ms|us|s|MB)\b|\b\d+(\.\d+)?(e-?\d+)? ulp|-?\d(\.\d+)?e-\d+"
    r'|"(?:seconds|ms)": ?[^,}]+| \d+\.\d(?= +\d+ )|(?m:^ *\d+(?= +\w+\.\w+$))'
)
"""Versions, times, small errors and sizes of files, which differ without a change of what is said."""

SHOWN = 40
"""The most characters of the first line of output that an entry shows."""


def entry(row: str) -> str:
    """Return the entry of a row."""
    commands, _, graphs = row.partition(" <- ")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, graph in zip("ab", filter(None, graphs.split(" && ")), strict=False):
            save(parsed(graph), f"{name}.onnx")
        return " | ".join(_said(command) for command in commands.split("; "))


def _said(command: str) -> str:
    """Return what ``command`` says and writes in the current folder."""
    before = _files()
    words = shlex.split(command)
    # In a context of its own, because flags such as --with-weights hold for a process.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pytest and a script show them in different places
        result = copy_context().run(CliRunner().invoke, app, words, env=PLAIN, prog_name="smelt")
    output = UNSTABLE.sub("#", result.output.replace(str(Path.cwd()), "."))
    lines = re.sub(" +", " ", output).splitlines()
    written = {name: data for name, data in _files().items() if data != before.get(name)}
    listed = "".join(f" {_file(name, data)}" for name, data in sorted(written.items()))
    first = lines[0][:SHOWN].strip() if lines else ""
    return f"{result.exit_code} {first!r} {len(lines)} lines {digest(*lines)}{listed}"


def _file(name: str, data: bytes) -> str:
    """Return ``name``, with a digest of a picture, or of a report up to its table of times."""
    if not name.endswith((".html", ".svg")):
        return name
    shown = data.decode().partition('id="data">')[2].partition('"spans"')[0] or data.decode()
    return f"{name} {digest(UNSTABLE.sub('#', shown))}"


def _files() -> dict[str, bytes]:
    """Return the files of the current folder and what they hold."""
    return {str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def _only_installed_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide operators that examples and pages of other tests have registered in this process."""
    OPERATORS.fill()
    installed = {
        key: entry
        for key, entry in OPERATORS._entries.items()
        if entry.owner.package or entry.owner.place.startswith("smelt.")
    }
    monkeypatch.setattr(OPERATORS, "_entries", installed)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_commands_say_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/cli/test_said.py"


if __name__ == "__main__":
    write(TABLE, entry)
