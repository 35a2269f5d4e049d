"""Models in files, and a way to call the command line in this process."""

import json
from contextvars import copy_context

import onnx
import pytest
from small_models import MODEL
from typer.testing import CliRunner

from smelt.cli.main import app


@pytest.fixture
def smelt():
    """Call ``smelt`` with arguments, and environment; the result has exit_code, stdout and stderr."""
    runner = CliRunner()

    def call(*arguments, stdin=None, **environment):
        # In a context of its own, because flags such as --with-weights hold for a process.
        run = copy_context().run
        words = [str(item) for item in arguments]
        return run(runner.invoke, app, words, input=stdin, env=environment, prog_name="smelt")

    return call


@pytest.fixture
def write(tmp_path):
    """Write ONNX text as a model file and return its path."""

    def write_model(text=MODEL, name="m.onnx"):
        path = tmp_path / name
        path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
        return path

    return write_model


@pytest.fixture
def document():
    """The JSON document on standard output, which holds nothing else."""
    return lambda result: json.loads(result.stdout)
