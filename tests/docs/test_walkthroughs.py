"""The pages that take a user by the hand: Python, files, commands of smelt and of cc, in order."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner
from walked_pages import WALKED
from webassembly import missing_for_wasm

from smelt.cli.main import app

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
STATUS = re.compile(r"\s+# status (\d+)$")


def commands(block: str) -> list[tuple[list[str], int]]:
    """Each command of a block as arguments, with the exit status that a comment behind it says."""
    found = []
    for line in block.replace("\\\n", " ").splitlines():
        status = STATUS.search(line)
        expected = int(status[1]) if status else 0
        found.append((shlex.split(STATUS.sub("", line), comments=True), expected))
    return [item for item in found if item[0]]


def run(arguments: list[str]) -> tuple[int, str]:
    """Exit status and words of a command; the other ones of a page, such as pip, are not run."""
    program, *rest = arguments
    if program == "smelt":
        result = CliRunner().invoke(app, rest)
        return result.exit_code, result.stdout + result.stderr
    assert program in ("cc", "pip"), program
    if program == "cc":
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr
    return 0, ""


@pytest.mark.parametrize("page", WALKED, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page.stem == "for-microcontrollers" and not shutil.which("cc"):
        pytest.skip("needs a C compiler called cc")
    if page.stem == "for-the-web" and missing_for_wasm():
        pytest.skip(missing_for_wasm())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module = ModuleType(page.stem.replace("-", "_"))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for language, title, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if title:
            (tmp_path / title).write_text(block, encoding="utf-8")
            monkeypatch.delitem(sys.modules, Path(title).stem, raising=False)
        elif language == "python":
            exec(compile(block, str(page), "exec"), module.__dict__)
        elif language == "sh":
            for arguments, status in commands(block):
                got, words = run(arguments)
                assert got == status, f"{shlex.join(arguments)}: {words}"
