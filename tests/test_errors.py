"""What is refused says why, and what to do about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import smelt

SOURCES = sorted(Path(smelt.__file__).parent.rglob("*.py"))


def refusals() -> Iterator[tuple[str, set[str | None]]]:
    """Where each Unsupported is made, and the keywords that it is given; None for ``**``."""
    for path in SOURCES:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) == "Unsupported":
                yield f"{path}:{call.lineno}", {each.arg for each in call.keywords}


def test_each_refusal_says_why_and_how_to_fix_it() -> None:
    found = dict(refusals())
    assert len(found) > 40
    silent = {at: {"why", "fix"} - given for at, given in found.items() if None not in given}
    assert not {at: lacking for at, lacking in silent.items() if lacking}
