"""``smelt batch``: real commands in real processes."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import onnx
import pytest
from small_models import MODEL

HANGS = "import sys, time; time.sleep(60) if 'hang' in sys.argv[2] else sys.exit('fails')"
"""What stands in for the command of each model: it hangs, or fails at once."""

DRIVER = f"""
import sys
from smelt.batch import process
from smelt.cli.main import run
process.COMMAND = (sys.executable, "-S", "-c", {HANGS!r})
run()
"""


def test_each_model_is_done_and_told(smelt, write, tmp_path, document):
    write(), write(MODEL.replace("Identity", "Relu"), "n.onnx")
    (tmp_path / "damaged.onnx").write_bytes(b"nothing")
    call = ("batch", tmp_path / "*.onnx", "--do", "optimize", "-o", tmp_path / "out", "--jobs", "2")
    result = smelt(*call, "--", "--verify", "final")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["model", "damaged.onnx", "m.onnx", "n.onnx"]
    assert "E301" in lines[1]
    assert "3 -> 2" in lines[2]
    assert "equal bits at 2 sizes" in lines[2]
    assert "3 models: 2 done, 1 failed; 0 of these in an earlier call" in result.stderr
    onnx.checker.check_model(tmp_path / "out" / "m.onnx")

    again = document(smelt(*call, "--json", "--", "--verify", "final"))
    assert again["schema"] == "smelt.batch/2"
    assert again["counts"] == {"done": 2, "failed": 1, "missing": 0, "cached": 3}
    assert again["models"][1]["evidence"]["mode"] == "final"


def test_compiled_models_and_their_sizes(smelt, write, tmp_path, document):
    write()
    options = ("--", "--target", "c", "--dim", "B=2", "--verify", "final")
    call = ("batch", tmp_path / "m.onnx", "--do", "compile", "-o", tmp_path / "out")
    result = smelt(*call, "--json", *options)
    assert result.exit_code == 0, result.stdout
    [model] = document(result)["models"]
    assert (tmp_path / "out" / "m" / "model.c").is_file()
    assert (model["nodes"][0], model["evidence"]["sizes"]) == (3, [{"B": 2}])
    assert model["bytes"][1] == sum(p.stat().st_size for p in (tmp_path / "out" / "m").iterdir())


def test_models_are_verified_with_those_in_the_folder(smelt, write, tmp_path, document):
    same, other = write(), write(MODEL.replace("Relu(h)", "Neg(h)"), "n.onnx")
    out = tmp_path / "out"
    out.mkdir()
    for path in (same, other):
        (out / path.name).write_bytes(same.read_bytes())
    result = smelt("batch", tmp_path / "*.onnx", "--do", "verify", "-o", out, "--json")
    assert result.exit_code == 1
    first, second = document(result)["models"]
    assert (first["error"], second["error"]["code"]) == (None, "E702")
    assert first["evidence"]["sizes"] == [{"B": 1}, {"B": 3}]
    assert "B=1, normal inputs, seed 0: output 'y'[" in second["error"]["at"][0]


def test_settings_are_options_of_each_model(smelt, write, tmp_path, monkeypatch, document):
    write()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "smelt.toml").write_text('[optimize]\nverify = "final"\npipeline = "cleanup"\n')
    call = ("batch", "m.onnx", "--do", "optimize", "-o", "out", "--json", "--with-weights")
    result = document(smelt(*call, "--", "--pipeline", "default"))
    settings = ["--with-weights", "--verify=final"]
    assert result["options"] == [*settings, "--pipeline", "default"]
    [model] = result["models"]
    assert (model["evidence"]["mode"], model["nodes"]) == ("final", [3, 2])
    assert document(smelt(*call, "--no-config"))["options"] == ["--with-weights"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["none*.onnx", "--do", "optimize", "-o", "out"], "E690"),
        (["m.onnx", "--do", "optimize", "-o", "out", "--", "-o", "x"], "E692"),
        (["m.onnx", "--do", "optimize", "-o", "out", "--", "--wrong"], "E643"),
        (["m.onnx", "--do", "sing", "-o", "out"], "E643"),
        (["m.onnx", "--do", "optimize", "-o", "out", "--jobs", "0"], "E643"),
        (["m.onnx", "--do", "optimize", "-o", "out", "--timeout", "-1"], "E637"),
        (["m.onnx", "--do", "optimize", "-o", "file"], "E639"),
        (["--do", "optimize", "-o", "out"], "E643"),
    ],
)
def test_mistakes_are_explained(smelt, write, tmp_path, monkeypatch, document, arguments, code):
    write()
    (tmp_path / "file").write_text("in the way")
    monkeypatch.chdir(tmp_path)
    result = smelt("batch", "--json", *arguments)
    assert (result.exit_code, document(result)["error"]["code"]) == (2, code)


def test_names_are_shown_without_escapes(smelt, write, tmp_path):
    for name in ("\x1b[31mred.onnx", "new\nline.onnx"):
        (tmp_path / name).write_bytes(b"nothing")
    (tmp_path / b"\xff.onnx".decode(errors="surrogateescape")).write_bytes(b"nothing")
    result = smelt("batch", tmp_path, "--do", "verify", "-o", tmp_path / "out")
    assert len(result.stdout.splitlines()) == 4
    assert result.stdout.replace("\n", "").isprintable()


def test_ray_that_is_missing_is_told(smelt, write, tmp_path, monkeypatch, document):
    monkeypatch.setitem(sys.modules, "ray", None)
    call = ("batch", write(), "--do", "optimize", "-o", tmp_path / "out", "--ray", "local")
    error = document(smelt(*call, "--json"))["error"]
    assert (error["code"], error["fix"]) == ("E631", "pip install 'smelt-compiler[ray]'")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_processes_and_keeps_what_is_done(write, tmp_path, number):
    write(), write(name="z-hang.onnx")
    record = tmp_path / "out" / "smelt-batch.jsonl"
    arguments = ["batch", str(tmp_path / "*.onnx"), "--do", "optimize", "-o", str(record.parent)]
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + 30
    while time.monotonic() < limit and not (record.exists() and record.read_bytes()):
        time.sleep(0.02)
    time.sleep(0.3)
    children = _children(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number, err
    assert "m.onnx" in out
    assert "Traceback" not in err
    assert "run the same command to continue" in err
    [line] = map(json.loads, record.read_text().splitlines())
    assert (line["name"], line["error"]["code"]) == ("m.onnx", "E901")
    assert children
    assert not any(child.exists() for child in children)


def _children(parent):
    lists = Path(f"/proc/{parent}/task").glob("*/children")
    return [Path("/proc", child) for path in lists for child in path.read_text().split()]
