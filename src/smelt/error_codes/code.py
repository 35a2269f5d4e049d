"""What is known about an error code."""

from __future__ import annotations

from typing import NamedTuple


class ErrorCode(NamedTuple):
    """A code in words: a title, what it means, and an example of a way out."""

    title: str
    meaning: str
    fix: str
