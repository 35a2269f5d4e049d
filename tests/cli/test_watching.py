"""The commands of ``docs/watch-a-compile.md`` say what the page shows."""

import re
import shlex
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "watch-a-compile.md").read_text(encoding="utf-8")
[MODEL] = re.findall(r"^```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
BLOCKS = re.findall(r"^```console\n\$ smelt (.*?)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def models(smelt, write, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(MODEL)
    assert smelt("optimize", "m.onnx", "-o", "small.onnx").exit_code == 0


@pytest.mark.parametrize(("command", "shown"), BLOCKS, ids=[command for command, _ in BLOCKS])
def test_a_command_says_what_the_page_shows(smelt, models, command, shown):
    result = smelt(*shlex.split(command))
    assert result.exit_code == (1 if command.startswith("diff") else 0), result.stderr
    said = iter([*result.stdout.splitlines(), *result.stderr.splitlines()])
    for line in shown.splitlines():
        assert line in said, f"not said, or not in this order: {line!r}"
