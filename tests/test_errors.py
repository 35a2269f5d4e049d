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
    """Where each error is made, and the keywords that have a text; None for ``**``."""
    for path in SOURCES:
        for call in ast.walk(ast.parse(path.read_text())):
            if isinstance(call, ast.Call) and ast.unparse(call.func) in ERRORS:
                filled = {each.arg for each in call.keywords if not may_be_empty(each.value)}
                yield f"{path}:{call.lineno}", filled


def may_be_empty(value: ast.expr) -> bool:
    """True if an empty text stands in ``value``, as in ``reason if known else ""``."""
    return any(isinstance(part, ast.Constant) and part.value == "" for part in parts(value))


def parts(value: ast.expr) -> list[ast.expr]:
    """The texts that ``value`` may be: sides of a condition, what is proposed otherwise."""
    if isinstance(value, ast.IfExp):
        return [*parts(value.body), *parts(value.orelse)]
    if isinstance(value, ast.BoolOp):
        return parts(value.values[-1])
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "did_you_mean":
        return parts(value.args[2])
    return [value]


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
