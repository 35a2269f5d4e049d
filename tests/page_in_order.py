"""Run the blocks of a page in order, in the interpreter that runs this file and the current folder.

``python page_in_order.py PAGE...`` needs nothing but smelt. Blocks with a title are written as files,
Python blocks share one namespace, and each command of a ``sh`` block must end with the status that a
comment behind it gives, else 0. Commands that install or build smelt itself are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
STATUS = re.compile(r"\s+# status (\d+)$")
EXTRAS = re.compile(r"^pip install '(?:\.|smelt-compiler)\[([a-z,-]+)\]'", re.MULTILINE)
ITSELF = ("pip ", "make ")


def extras(page: Path) -> str:
    """Return the extras that the first install line of ``page`` names; empty if it has none."""
    found = EXTRAS.search(page.read_text(encoding="utf-8"))
    return found[1] if found else ""


def lines(block: str) -> Iterator[tuple[str, int]]:
    """Yield each command of a ``sh`` block and the exit status that it must have."""
    for line in block.replace("\\\n", " ").splitlines():
        status = STATUS.search(line)
        if line.strip() and not line.startswith(("#", *ITSELF)):
            yield STATUS.sub("", line), int(status[1]) if status else 0


def run(page: Path) -> None:
    """Run all blocks of ``page``; exits with a message at the first command that fails."""
    module = ModuleType(page.stem.replace("-", "_"))
    sys.modules[module.__name__] = module
    for language, title, block in BLOCK.findall(page.read_text(encoding="utf-8")):
        if title:
            Path(title).write_text(block, encoding="utf-8")
            sys.modules.pop(Path(title).stem, None)
        elif language == "python":
            exec(compile(block, str(page), "exec"), module.__dict__)
        elif language == "sh":
            for line, status in lines(block):
                done = subprocess.run(["bash", "-c", line], check=False)
                if done.returncode != status:
                    sys.exit(f"{page.name}: status {done.returncode}, not {status}: {line}")


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sys.path[0] = str(Path.cwd())
    for name in sys.argv[1:]:
        run(Path(name))
