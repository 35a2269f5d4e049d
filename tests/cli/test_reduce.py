"""``smelt reduce``: a command decides, by its exit status; ``smelt bisect --reduce`` decides itself."""

import shlex
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import onnx
import pytest
from long_models import chain
from small_models import MODEL
from wrong_rules import HARMLESS, drop_relu, wrong_pass

from smelt.passes.pipeline import Step

SOFTMAX = "grep -q Softmax {}"


def ops(path):
    return [node.op_type for node in onnx.load(path).graph.node]


@pytest.fixture
def small(tmp_path):
    return tmp_path / "small.onnx"


def test_a_thousand_nodes_become_few_and_the_runs_are_told(smelt, write, small, document):
    model = write(chain(1000, 600, "Erf", "Softmax"))
    command = ("reduce", model, "--check", SOFTMAX, "--check-status", "0", "-o", small)
    result = smelt(*command)
    assert result.exit_code == 0, result.stderr
    assert ops(small) == ["Softmax"]
    assert "1,000 nodes became 1" in result.stderr
    assert "runs of the check" in result.stderr
    assert result.stdout == ""


def test_the_same_as_json_and_through_streams(smelt, write, small, document):
    model = write(chain(40, 9, "Softmax"))
    options = ("--check", SOFTMAX, "--check-status", "0", "-o")
    facts = document(smelt("reduce", model, *options, small, "--json"))
    assert (facts["schema"], facts["nodes"], facts["status"]) == ("smelt.reduce/1", [40, 1], 0)
    result = smelt("reduce", "-", *options, "-", stdin=model.read_bytes())
    assert result.stdout_bytes == small.read_bytes()
    assert (
        "E637"
        in smelt("reduce", model, *options, "-", "--json").stderr
        + smelt("reduce", model, *options, "-", "--json").stdout
    )


def shell(text):
    """A check that a shell reads; its $1 is the model."""
    return shlex.join(["sh", "-c", text, "_"])


CRASHES = "grep -q Softmax $1 && kill -SEGV $$; exit 0"
TWO_FAILURES = "grep -q Softmax $1 || exit 3; exit 1"
TALKS = "grep -q Softmax $1 && echo E901 here; exit 1"


@pytest.mark.parametrize(
    ("script", "options", "status"),
    [
        (CRASHES, (), -signal.SIGSEGV),
        (CRASHES, ("--check-status", str(-signal.SIGSEGV)), -signal.SIGSEGV),
        (TWO_FAILURES, (), 1),
        (TALKS, ("--check-text", "E901"), 1),
    ],
    ids=["a crash", "a crash by its number", "not another failure", "what it prints"],
)
def test_still_there_is_what_the_model_itself_does(
    smelt, write, small, document, script, options, status
):
    model = write(chain(30, 9, "Softmax"))
    result = smelt("reduce", model, "--check", shell(script), *options, "-o", small, "--json")
    assert result.exit_code == 0, result.stdout
    assert document(result)["status"] == status
    assert ops(small) == ["Softmax"]


def test_any_failure_is_taken_on_request(smelt, write, small):
    options = ("--check", shell(TWO_FAILURES), "--check-status", "failure")
    assert smelt("reduce", write(chain(30, 9, "Softmax")), *options, "-o", small).exit_code == 0
    assert len(ops(small)) == 1


def is_running(pid):
    """A process that is no zombie."""
    command = ["ps", "-o", "stat=", "-p", pid]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    return shown.stdout.strip()[:1] not in ("", "Z")


def test_a_check_that_hangs_is_stopped_with_what_it_started(smelt, write, small, tmp_path):
    script = f"grep -q Softmax $1 || exit 0; sleep 60 & echo $! >> {tmp_path}/pids; wait"
    options = ("--check", shell(script), "--timeout", "0.2", "-o", small)
    result = smelt("reduce", write(chain(4, 2, "Softmax")), *options)
    assert result.exit_code == 0, result.stderr
    assert "CMD ends with timeout" in result.stderr
    assert ops(small) == ["Softmax"]
    assert not any(is_running(pid) for pid in (tmp_path / "pids").read_text().split())


def test_the_path_comes_last_without_a_place_for_it(smelt, write, small):
    options = ("--check", "grep -q Softmax", "--check-status", "0", "-o", small)
    assert smelt("reduce", write(chain(9, 4, "Softmax")), *options).exit_code == 0
    assert ops(small) == ["Softmax"]


def test_temporary_files_of_a_check_are_deleted(smelt, write, small, tmp_path):
    script = f"mktemp >> {tmp_path}/left; grep -q Softmax $1 && exit 1; exit 0"
    result = smelt("reduce", write(chain(4, 2, "Softmax")), "--check", shell(script), "-o", small)
    assert result.exit_code == 0, result.stderr
    left = (tmp_path / "left").read_text().split()
    assert left
    assert not any(Path(file).exists() for file in left)


def test_an_interrupt_writes_the_smallest_so_far(write, small, tmp_path):
    runs = tmp_path / "runs"
    # The eighth run interrupts smelt, its parent, and lasts until smelt stops it.
    eighth = f"echo x >> {runs}; [ $(wc -l < {runs}) -ge 8 ] && kill -INT $PPID && sleep 60"
    check = shell(f"{eighth}; grep -q Softmax $1 && exit 1; exit 0")
    command = [sys.executable, "-m", "smelt", "reduce", write(chain(64, 20, "Softmax"))]
    done = subprocess.run(
        [*command, "--check", check, "-o", small],
        stderr=subprocess.PIPE,
        timeout=60,
        check=False,
        # A shell without job control starts its jobs with interrupts ignored, and so their children.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    assert done.returncode == 130
    assert b"stopped by Ctrl-C; more nodes or weights may be removable" in done.stderr
    assert runs.read_text() == "x\n" * 8
    assert 1 <= len(ops(small)) < 64


def test_runs_are_limited(smelt, write, small):
    options = ("--check", SOFTMAX, "--check-status", "0", "--runs", "4", "-o", small)
    result = smelt("reduce", write(chain(100, 50, "Softmax")), *options)
    assert "in 4 runs" in result.stderr
    assert "more nodes or weights may be removable" in result.stderr
    assert 1 < len(ops(small)) < 100


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--check", "grep -q Softmax", "--check-status", "0"), "E621"),
        (("--check", "true"), "E621"),
        (("--check", "no-such-command-here {}"), "E622"),
        (("--check", "/"), "E622"),
        (("--check", ""), "E636"),
        (("--check", "sh -c 'open"), "E636"),
        (("--check", "true", "--check-status", "one"), "E636"),
    ],
)
def test_unusable_checks_are_refused(smelt, write, small, options, code):
    result = smelt("reduce", write(), *options, "-o", small)
    assert (result.exit_code, result.stderr[:4]) == (2, code)
    assert not small.exists()


@pytest.mark.parametrize(
    ("status", "words"), {"7": "7", "failure": "any other than 0", "timeout": "timeout"}.items()
)
def test_a_check_that_ends_otherwise_is_told(smelt, write, small, status, words):
    result = smelt("reduce", write(), "--check", "true", "--check-status", status, "-o", small)
    assert f"CMD ended with 0, and {words} was asked for" in result.stderr


def optimize_with(optimize, steps, model, **options):
    return optimize(model, **{**options, "pipeline": steps})


@pytest.fixture
def wrong_pipeline(monkeypatch):
    """Every pipeline drops Relu."""
    from smelt import compiler

    steps = (Step(HARMLESS), Step(wrong_pass(drop_relu)))
    optimize = partial(optimize_with, compiler.optimize_model, steps)
    monkeypatch.setattr(compiler, "optimize_model", optimize)


def test_bisect_writes_the_smallest_model(smelt, write, small, document, wrong_pipeline):
    text = MODEL.replace("y = Relu(h)", "r = Relu(h) e = Exp(r) y = Tanh(e)")
    found = document(smelt("bisect", write(text), "--reduce", small, "--json"))
    assert found["culprit"]["rules"] == ["drop_relu"]
    assert found["reduced"]["nodes"] == [5, 1]
    assert ops(small) == ["Relu"]
    again = smelt("bisect", small, "--reduce", "-")
    assert again.exit_code == 1
    assert "rule drop_relu" in again.stderr
    assert ops(small) == [n.op_type for n in onnx.load_from_string(again.stdout_bytes).graph.node]


def test_bisect_of_a_right_pipeline_writes_nothing(smelt, write, small):
    assert smelt("bisect", write(), "--reduce", small).exit_code == 0
    assert not small.exists()
