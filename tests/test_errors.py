"""Every error says why it occurred, and what to do about it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import smelt
from smelt.errors import InternalError

SOURCES = sorted(Path(smelt.__file__).parent.rglob("*.py"))


ERRORS = ("UsageError", "InvalidModel", "Unsupported", "ResourceLimit", "Mismatch")
"""The errors whose sites give a reason and a fix; an InternalError has both by itself."""


def made() -> Iterator[tuple[str, set[str | None]]]:
    """Where each error is made, and the keywords that it is given; None for ``**``."""
    for path in SOURCES:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ERRORS:
                yield f"{path}:{call.lineno}", {each.arg for each in call.keywords}


def test_each_error_says_why_and_how_to_fix_it() -> None:
    found = dict(made())
    assert len(found) > 450
    silent = {at: {"why", "fix"} - given for at, given in found.items() if None not in given}
    assert not {at: lacking for at, lacking in silent.items() if lacking}


def test_a_mistake_of_smelt_says_so() -> None:
    error = InternalError("E902", "a node is in no graph")
    assert error.why == "this is a mistake of smelt, not of yours"
    assert "report" in error.fix
    assert InternalError("E902", "it", why="a reason", fix="a fix").why == "a reason"
