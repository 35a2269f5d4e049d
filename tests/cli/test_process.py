"""What only a process shows: start-up, imports, pipes, and no tracebacks."""

import os
import shutil
import signal
import subprocess
import sys

import pytest

HEAVY = ("jax", "torch", "onnxruntime", "onnx_ir", "onnx", "numpy", "scipy")
LIMIT = 0.5
"""Seconds of CPU for ``smelt --help``."""

PROBE = f"""
import sys, time
sys.argv = ["smelt", "--help"]
from smelt.cli.main import run
try:
    run()
except SystemExit:
    pass
loaded = [name for name in {HEAVY!r} if name in sys.modules]
print(time.process_time(), *loaded, file=sys.stderr)
"""


def call(*arguments, **options):
    return subprocess.run(
        arguments, capture_output=True, text=True, timeout=60, check=False, **options
    )


def test_help_is_quick_and_imports_nothing_heavy():
    # The best of three: the machine may be busy, and the limit is about smelt.
    lines = [call(sys.executable, "-c", PROBE).stderr.split() for _ in range(3)]
    assert all(not line[1:] for line in lines), lines
    assert min(float(line[0]) for line in lines) < LIMIT


def test_a_reader_that_leaves_early_is_no_error():
    code = (
        "import sys; sys.argv = ['smelt', 'explain', 'E701']; from smelt.cli.main import run; run()"
    )
    read, write = os.pipe()
    os.close(read)
    process = subprocess.run(
        [sys.executable, "-c", code],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert process.stderr == ""
    assert process.returncode == 0


@pytest.mark.parametrize("arguments", [["inspect", "missing.onnx"], ["inspect", "/"]])
def test_a_mistake_of_the_user_shows_no_traceback(arguments):
    result = call(sys.executable, "-c", "from smelt.cli.main import run; run()", *arguments)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("E6")
    assert "Traceback" not in result.stderr


WAITING = """
import signal, sys, time
from smelt import compiler
signal.signal(signal.SIGINT, signal.default_int_handler)  # background shells ignore it
def wait(*arguments, **options):
    print("now", flush=True)
    time.sleep(60)
compiler.optimize_model = wait
from smelt.cli.main import run
run()
"""


def test_ctrl_c_says_what_is_left_and_has_the_status_of_shells(write, tmp_path):
    output = tmp_path / "out.onnx"
    output.write_bytes(b"the old file")
    words = [sys.executable, "-c", WAITING, "optimize", str(write()), "-o", str(output)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "now\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert told.strip() == f"stopped by Ctrl-C: {output} is unchanged"
    assert process.returncode == 130
    assert output.read_bytes() == b"the old file"


ZSH = """
autoload -Uz compinit && compinit -u -d "$ZDOTDIR/dump"
eval "$(env _SMELT_COMPLETE=source_zsh smelt)"
_arguments() { print -r -- "$@" }
words=(smelt compile m.onnx --target h) CURRENT=5
_smelt_completion
"""


@pytest.mark.skipif(shutil.which("zsh") is None, reason="needs zsh")
def test_zsh_completes_the_names_of_targets(tmp_path):
    command = tmp_path / "smelt"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m smelt "$@"\n')
    command.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "ZDOTDIR": str(tmp_path), "PATH": path}
    found = call("zsh", "-f", "-c", ZSH, env=environment)
    assert '"host"' in found.stdout, found
