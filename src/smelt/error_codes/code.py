"""The explanation of an error code."""

from __future__ import annotations

from typing import NamedTuple


class ErrorCode(NamedTuple):
    """The title of a code, its meaning, and how to fix the error: an advice or an example."""

    title: str
    meaning: str
    fix: str
