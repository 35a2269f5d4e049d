"""Models as WebAssembly for tests, and scripts that Node runs beside them."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from smelt.errors import UsageError
from smelt.runtime.wasm_compiler import compiler_command


@cache
def missing_for_wasm() -> str:
    """Return why modules cannot be built and run here; empty if they can."""
    try:
        compiler_command()
    except UsageError as error:
        return error.what
    return "" if shutil.which("node") else "there is no Node"


def needs_wasm() -> pytest.MarkDecorator:
    """A mark that skips where modules cannot be built and run."""
    return pytest.mark.skipif(
        bool(missing_for_wasm()), reason=missing_for_wasm() or "clang and Node are there"
    )


def node(folder: Path, script: str) -> Any:
    """The value that ``script`` gives to ``tell``, run in ``folder`` as a module."""
    head = "const tell = (value) => console.log(JSON.stringify(value, (_, v) => v?.buffer ? [...v] : v));\n"
    (folder / "script.mjs").write_text(head + script)
    command = ["node", "script.mjs"]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
