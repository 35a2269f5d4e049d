"""How tables and long lines fit into a terminal, or into the width that COLUMNS asks for."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

NARROW = 12
"""Characters that a column of text keeps at least."""


def width() -> int | None:
    """Characters of a line; None if nobody reads it on a terminal or says how many there are."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return max(shutil.get_terminal_size().columns, 20)
    return None


def table(
    rows: Sequence[tuple[Any, ...]], header: tuple[str, ...] = (), limit: int | None = None
) -> str:
    """Columns of text, numbers right-aligned; cells wrap so that a line has ``limit`` characters.

    Without a ``limit``, the width of the terminal is the limit. Text wraps behind spaces and
    commas, never inside a word.
    """
    lines = [header, *rows] if header else list(rows)
    if not lines:
        return ""
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(lines[0]))]
    floors = [
        max(max(map(len, _pieces(str(line[i])))) for line in lines) for i in range(len(widths))
    ]
    widths = fitted(widths, limit or width(), floors)
    return "\n".join(text for line in lines for text in _wrapped(line, widths))


def printable(item: object) -> str:
    """``item`` as text of one line: tabs, line ends and escapes as they are spelled in Python.

    For what others wrote, such as the names in a model.
    """
    text = str(item)
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def fitted(widths: list[int], total: int | None, floors: Sequence[int] = ()) -> list[int]:
    """``widths`` of columns, the widest made narrower until a line has at most ``total``.

    The first column, which holds names, keeps its width. No column gets narrower than ``NARROW``
    or than its entry of ``floors``, the longest piece of text that must not break.
    """
    widths = list(widths)
    least = [max(NARROW, floor) for floor in floors] or [NARROW] * len(widths)
    surplus = 0 if total is None else sum(widths) + 2 * (len(widths) - 1) - total
    while surplus > 0:
        wide = [index for index in range(1, len(widths)) if widths[index] > least[index]]
        if not wide:
            break
        widest = max(wide, key=widths.__getitem__)
        others = [size for index, size in enumerate(widths) if index not in (0, widest)]
        goal = max(
            least[widest], widths[widest] - surplus, min(max(others, default=0), widths[widest] - 1)
        )
        surplus -= widths[widest] - goal
        widths[widest] = goal
    return widths


def _wrapped(line: tuple[Any, ...], widths: list[int]) -> list[str]:
    cells = [
        _folded_cell(str(cell), size) if len(str(cell)) > size else [str(cell)]
        for cell, size in zip(line, widths, strict=True)
    ]
    numbers = [isinstance(cell, int | float) for cell in line]
    texts = []
    for row in range(max(map(len, cells))):
        parts = [cell[row] if row < len(cell) else "" for cell in cells]
        padded = [
            part.rjust(size) if number else part.ljust(size)
            for part, size, number in zip(parts, widths, numbers, strict=True)
        ]
        texts.append("  ".join(padded).rstrip())
    return texts


def _pieces(text: str) -> list[str]:
    """``text`` in pieces that must not break: words, and the parts of a word behind commas."""
    return re.findall(r"[^\s,]*,|[^\s,]+", text) or [""]


def _folded_cell(text: str, size: int) -> list[str]:
    """``text`` in lines of at most ``size`` characters, broken behind spaces and commas."""
    lines = [""]
    for match in re.finditer(r"(\s*)([^\s,]*,|[^\s,]+)", text):
        space, piece = match.groups()
        if lines[-1] and len(lines[-1]) + len(space) + len(piece) > size:
            lines.append(piece)
        else:
            lines[-1] += (space if lines[-1] else "") + piece
    return lines


def prose(text: str, limit: int | None = None) -> str:
    """``text`` with lines of at most ``limit`` characters, wrapped under their own indentation.

    Without a ``limit``, the width of the terminal is the limit.
    """
    limit = limit or width()
    if limit is None:
        return text
    return "\n".join(_folded(line, limit) for line in text.splitlines())


def _folded(line: str, limit: int) -> str:
    if len(line) <= limit:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line, limit, subsequent_indent=indent, break_on_hyphens=False)
