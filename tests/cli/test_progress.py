"""A command that takes long says what it does, on a terminal only."""

import os
import pty
import re
import subprocess
import sys

import pytest
from small_models import MODEL

SLOW = """
import sys, time
from smelt.cli import progress
progress.DELAY = float(sys.argv.pop(1))
from smelt.passes import run
original = run._Run.step
def slow(self, step):
    report = original(self, step)
    time.sleep(0.02)
    return report
run._Run.step = slow
from smelt.cli.main import run
run()
"""


def on_terminal(*arguments):
    """What the command writes to its standard error, which is a terminal."""
    reader, writer = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=writer,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(writer)
    written = b""
    while True:
        try:
            part = os.read(reader, 4096)
        except OSError:  # Linux says so when the last writer is gone
            break
        if not part:
            break
        written += part
    os.close(reader)
    assert process.wait(60) == 0
    return written.decode()


def test_a_long_run_shows_the_pass_the_nodes_and_the_time(write, tmp_path):
    shown = on_terminal(0.01, "optimize", write(), "-o", tmp_path / "out.onnx")
    # Which passes are seen is a matter of when the line is drawn anew.
    assert re.search(r"[a-z]-[a-z-]+: 3 nodes", shown)
    assert "0:00:" in shown


@pytest.mark.slow
def test_long_lines_that_are_printed_meanwhile_stay_whole(write, tmp_path):
    name = "n" * 150
    model = write(
        MODEL.replace("a = Identity(x)  h = MatMul(a,", f"{name} = Identity(x)  h = MatMul({name},")
    )
    shown = on_terminal(0.01, "optimize", model, "-o", tmp_path / "o.onnx", "--print-changed")
    assert f"\x1b[31m-  {name} = Identity(x)  # float[B,4]\x1b[0m\r\n" in shown


def test_a_short_run_shows_only_its_result(write, tmp_path):
    shown = on_terminal(60, "optimize", write(), "-o", tmp_path / "out.onnx")
    assert shown.startswith(str(tmp_path / "out.onnx"))


def test_nothing_is_shown_where_no_terminal_is(write, tmp_path):
    arguments = ["0.01", "optimize", str(write()), "-o", str(tmp_path / "out.onnx")]
    result = subprocess.run(
        [sys.executable, "-c", SLOW, *arguments], capture_output=True, text=True, check=True
    )
    assert result.stderr.startswith(str(tmp_path / "out.onnx"))
    assert "\r" not in result.stderr
