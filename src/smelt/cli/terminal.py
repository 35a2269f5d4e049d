"""Colours of the output: when to write them (``--color``, NO_COLOR), and for which text.

::

    print(painted("12 nodes", "bold", sys.stdout))
"""

from __future__ import annotations

import os
import re
import sys
from contextvars import ContextVar
from typing import Literal, TextIO, TypeAlias

When: TypeAlias = Literal["auto", "always", "never"]
Style: TypeAlias = Literal["bold", "dim", "red", "green", "yellow", "cyan"]

color: ContextVar[When] = ContextVar("smelt.color", default="auto")
"""The value of ``--color``."""

CODES: dict[Style, int] = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}
"""The numbers of the escape sequence that begins each style (ECMA-48, SGR)."""

DIFF: dict[str, Style] = {"+": "green", "-": "red", "@": "cyan", "!": "yellow", "*": "bold"}
"""The style of a line of a diff by its first character; ``!`` marks changes of the interface, ``*``
the pass that a diff belongs to.
"""

_CODE = re.compile(r"^(E\d{3})(?= )", re.MULTILINE)
_PART = re.compile(r"^(  (?:at   |why  |fix  |see  ))", re.MULTILINE)


def is_coloured(stream: TextIO) -> bool:
    """True if ``stream`` gets colours: ``--color`` decides, else NO_COLOR, else the terminal."""
    when = color.get()
    if when != "auto":
        return when == "always"
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def painted(text: str, style: Style, stream: TextIO) -> str:
    """Return ``text`` in ``style``, or unchanged if ``stream`` gets no colours."""
    return _in_style(text, style) if text and is_coloured(stream) else text


def painted_diff(text: str, stream: TextIO | None = None) -> str:
    """Return the lines of a unified diff in their colours; ``stream`` defaults to stdout."""
    if not is_coloured(stream or sys.stdout):
        return text
    return "\n".join(
        _in_style(line, DIFF[line[0]]) if line[:1] in DIFF else line for line in text.split("\n")
    )


def painted_error(text: str, stream: TextIO) -> str:
    """Return the text of errors with red codes, and the names of their parts dimmed."""
    if not is_coloured(stream):
        return text
    text = _CODE.sub(lambda match: _in_style(match[1], "red"), text)
    return _PART.sub(lambda match: _in_style(match[1], "dim"), text)


def _in_style(text: str, style: Style) -> str:
    """Return ``text`` between the escape sequences of ``style``."""
    return f"\x1b[{CODES[style]}m{text}\x1b[0m"
