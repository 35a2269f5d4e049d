"""How tables and long lines fit into a terminal, or into the width that COLUMNS asks for."""

from __future__ import annotations

import os
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


def table(rows: Sequence[tuple[Any, ...]], header: tuple[str, ...] = ()) -> str:
    """Columns of text, the numbers to the right; cells are wrapped where the line is too long."""
    lines = [header, *rows] if header else list(rows)
    if not lines:
        return ""
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(lines[0]))]
    widths = fitted(widths, width())
    return "\n".join(text for line in lines for text in _wrapped(line, widths))


def printable(item: object) -> str:
    """``item`` as text of one line: tabs, line ends and escapes as they are spelled in Python.

    For what others wrote, such as the names in a model.
    """
    text = str(item)
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def fitted(widths: list[int], total: int | None) -> list[int]:
    """``widths`` of columns, the widest made narrower until a line has at most ``total``.

    The first column, which holds names, stays as wide as it is.
    """
    widths = list(widths)
    surplus = 0 if total is None else sum(widths) + 2 * (len(widths) - 1) - total
    while surplus > 0:
        widest = max(range(1, len(widths)), key=widths.__getitem__, default=0)
        if not widest or widths[widest] <= NARROW:
            break
        others = [size for index, size in enumerate(widths) if index not in (0, widest)]
        goal = max(
            NARROW, widths[widest] - surplus, min(max(others, default=0), widths[widest] - 1)
        )
        surplus -= widths[widest] - goal
        widths[widest] = goal
    return widths


def _wrapped(line: tuple[Any, ...], widths: list[int]) -> list[str]:
    cells = [
        textwrap.wrap(str(cell), size, break_on_hyphens=False) or [""]
        if len(str(cell)) > size
        else [str(cell)]
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


def prose(text: str) -> str:
    """``text`` with long lines wrapped under their own indentation."""
    limit = width()
    if limit is None:
        return text
    return "\n".join(_folded(line, limit) for line in text.splitlines())


def _folded(line: str, limit: int) -> str:
    if len(line) <= limit:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line, limit, subsequent_indent=indent, break_on_hyphens=False)
