"""What the runtime decides stands in ``told.txt``, which is read when an entry changes.

A row is an expression over the names below: ``ranges(graph, dims)`` tells the values that each
input may have, ``cached(steps)`` what a folder of libraries holds after each step.
``PYTHONPATH=src:tests python tests/runtime/test_told.py`` writes the entries again.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from recorded import parsed, rows, told, write

from smelt.runtime.input_ranges import index_range
from smelt.runtime.jit.cache import DIGEST, LIBRARY, Cache

TABLE = Path(__file__).with_name("told.txt")


def ranges(graph: str, **sizes: int) -> dict[str, Any]:
    """Return the range of each input, of a graph at opset 20 by default."""
    model = parsed(graph if graph.startswith("opset") else f"opset 20: {graph}")
    return {str(value.name): index_range(value, sizes) for value in model.graph.inputs}


def cached(limit: int, *steps: str) -> list[str]:
    """Return what each step gives, and then the names in the folder.

    ``add a 10`` stores 10 bytes, ``fail a`` fails to, ``find a``, ``note a``, ``has a`` and ``text
    a`` ask; ``age a 50`` makes an entry 50 s older, ``open a`` lets others write it, ``break a``
    changes its library, ``part a 50`` leaves an unfinished entry of 50 s ago.
    """
    seen = []
    with tempfile.TemporaryDirectory() as name:
        cache = Cache(Path(name, "c"), limit)
        for step in steps:
            seen.append(f"{step}: {_done(cache, *step.split())}")
    return seen


def _done(cache: Cache, what: str, key: str, number: str = "0") -> str:
    """Return what one step gives and the names in the folder."""
    path = cache.root if key == "." else cache.root / key
    try:
        found = _step(cache, path, what, key, int(number))
    except OSError as error:
        found = type(error).__name__
    names = sorted(each.name for each in cache.root.iterdir()) if cache.root.exists() else []
    return (
        f"{found} {' '.join(name.partition('-')[0] if 'tmp' in name else name for name in names)}"
    )


def _step(cache: Cache, path: Path, what: str, key: str, number: int) -> object:
    """Do one step and return what it gives."""
    match what:
        case "add" | "fail":

            def make(folder: Path) -> Path:
                """Write a library."""
                if what == "fail":
                    raise OSError
                Path(folder, "made.so").write_bytes(b"x" * number)
                return Path(folder, "made.so")

            return cache.add(key, make).parent.name
        case "find":
            found = cache.find(key)
            return None if found is None else found.name
        case "note":
            return cache.note(key, "text")
        case "has":
            return cache.has_note(key)
        case "text":
            return cache.note_text(key)
        case "age":
            then = time.time() - number
            os.utime(path, (then, then))
        case "open":
            path.chmod(0o777)
        case "close":
            path.chmod(0o700)
        case "break":
            Path(path, LIBRARY).write_bytes(b"other")
        case "strip":
            Path(path, DIGEST).unlink()
        case "part":
            path.mkdir(parents=True)
            os.utime(path, (time.time() - number,) * 2)
    return ""


NAMES = {"ranges": ranges, "cached": cached}


def entry(row: str) -> str:
    """Return the entry of a row."""
    return told(row, NAMES)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_runtime_decides_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/runtime/test_told.py"


if __name__ == "__main__":
    write(TABLE, entry)
