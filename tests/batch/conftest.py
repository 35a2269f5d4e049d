"""Models in a folder, and a command that behaves as the name of its model says."""

import sys

import onnx
import pytest
from small_models import MODEL

from smelt.batch import process

COMMAND = """
import json, os, signal, sys, time
action, model, *rest = sys.argv[1:]
name = os.path.basename(model)
output = rest[rest.index("-o") + 1] if "-o" in rest else rest[0]
with open(os.path.join(os.path.dirname(__file__), "calls"), "a") as stream:
    print(name, *rest[2:-2], file=stream)
if "hang" in name:
    time.sleep(60)
if "killed" in name:
    os.kill(os.getpid(), signal.SIGKILL)
if "crash" in name:
    print("*** stack smashing detected ***", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGABRT)
if "mute" in name:
    sys.exit("no words")
if "odd" in name:
    print("[]" if "list" in name else "{}")
    sys.exit()
if "bad" in name:
    print(json.dumps({"error": {"code": "E301", "status": 3, "what": "no model"}}))
    sys.exit(3)
if "--wrong" in rest:
    print(json.dumps({"error": {"code": "E643", "status": 2, "what": "No such option"}}))
    sys.exit(2)
with open(output, "w") as stream:
    stream.write("small")
print(json.dumps({"output": output, "nodes": [3, 2], "evidence": None}))
"""


@pytest.fixture
def write(tmp_path):
    """Write a model below ``m/`` and return its path."""

    def write_model(name, text=MODEL):
        path = tmp_path / "m" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
        return path

    return write_model


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Stand in for the command line; the result tells the models and options of its calls."""
    script = tmp_path / "command.py"
    script.write_text(COMMAND)
    monkeypatch.setattr(process, "COMMAND", (sys.executable, "-S", "-E", str(script)))

    def told():
        path = tmp_path / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.write_text("")
        return sorted(lines)

    return told
