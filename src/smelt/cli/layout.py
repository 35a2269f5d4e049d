"""Lay out tables and long lines for the width of the terminal, or for COLUMNS."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, TextIO

from smelt.cli.terminal import painted

NARROW = 12
"""The least width of a column of text."""

WORDS = r"[^\s,]*,|[^\s,]+"
"""Pieces of a cell that must not break: words, split further behind commas."""

FACTORS = r"[^\s,*]*[,*]|[^\s,*]+"
"""The same for a table that is too wide otherwise: products are also split behind ``*``."""


def width() -> int | None:
    """Return the width of a line; None if standard output is no terminal and COLUMNS is unset."""
    if "COLUMNS" in os.environ or sys.stdout.isatty():
        return max(shutil.get_terminal_size().columns, 20)
    return None


def table(
    rows: Sequence[tuple[Any, ...]],
    header: tuple[str, ...] = (),
    limit: int | None = None,
    stream: TextIO | None = None,
) -> str:
    """Return rows as columns of text, numbers right-aligned, with lines of at most ``limit``.

    ``limit`` defaults to the width of the terminal. Cells wrap behind spaces and commas, and behind
    ``*`` if the table would be too wide otherwise; never inside a word. The header is bold if
    ``stream`` (standard output) gets colours.
    """
    lines = [header, *rows] if header else list(rows)
    if not lines:
        return ""
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(lines[0]))]
    pieces, widths = _breaks(lines, widths, limit or width())
    texts = [_wrapped(line, widths, pieces) for line in lines]
    if header:
        texts[0] = [painted(text, "bold", stream or sys.stdout) for text in texts[0]]
    return "\n".join(text for part in texts for text in part)


def _breaks(
    lines: Sequence[tuple[Any, ...]], widths: list[int], total: int | None
) -> tuple[str, list[int]]:
    """Return ``WORDS`` and the fitted widths, or ``FACTORS`` and theirs if only these fit."""
    layouts = []
    for pieces in (WORDS, FACTORS):
        floors = [
            max(_longest_piece(str(line[i]), pieces) for line in lines) for i in range(len(widths))
        ]
        layouts.append((pieces, fitted(widths, total, floors)))
        if total is None or sum(layouts[-1][1]) + 2 * (len(widths) - 1) <= total:
            return layouts[-1]
    return layouts[0]


def printable(item: object) -> str:
    """Return ``item`` as one line, with tabs, line ends and escapes spelled as in Python.

    Use it for text from files, such as the names in a model.
    """
    text = str(item)
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def fitted(widths: list[int], total: int | None, floors: Sequence[int] = ()) -> list[int]:
    """Return ``widths`` with the widest columns narrowed until a line has at most ``total``.

    The first column, which holds names, keeps its width if it takes at most half of the line. No
    column becomes narrower than ``NARROW`` or than its entry of ``floors``, the longest piece of
    text that must not break.
    """
    widths = list(widths)
    minimums = [max(NARROW, floor) for floor in floors] or [NARROW] * len(widths)
    first = 0 if floors and total is not None and widths[0] > total // 2 else 1
    # A line has all columns, and two spaces between them.
    surplus = 0 if total is None else sum(widths) + 2 * (len(widths) - 1) - total
    while surplus > 0:
        wide = [index for index in range(first, len(widths)) if widths[index] > minimums[index]]
        if not wide:
            break
        widest = max(wide, key=widths.__getitem__)
        others = [size for index, size in enumerate(widths) if index not in (0, widest)]
        new_width = max(
            minimums[widest],
            widths[widest] - surplus,
            min(max(others, default=0), widths[widest] - 1),
        )
        surplus -= widths[widest] - new_width
        widths[widest] = new_width
    return widths


def _wrapped(line: tuple[Any, ...], widths: list[int], pieces: str) -> list[str]:
    """Return the lines of text for one row, with cells wrapped to ``widths`` between ``pieces``."""
    cells = [
        _folded_cell(str(cell), size, pieces) if len(str(cell)) > size else [str(cell)]
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


def _longest_piece(text: str, pieces: str) -> int:
    """Return the length of the longest match of ``pieces``, which is not broken."""
    return max(map(len, re.findall(pieces, text)), default=0)


def _folded_cell(text: str, size: int, pieces: str) -> list[str]:
    """Return ``text`` as lines of at most ``size`` characters, broken between ``pieces``.

    A longer piece has a line of its own.
    """
    lines = [""]
    for match in re.finditer(rf"(\s*)({pieces})", text):
        space, piece = match.groups()
        if lines[-1] and len(lines[-1]) + len(space) + len(piece) > size:
            lines.append(piece)
        else:
            lines[-1] += (space if lines[-1] else "") + piece
    return lines


def prose(text: str, limit: int | None = None) -> str:
    """Return ``text`` with lines of at most ``limit`` characters, wrapped with their indentation.

    ``limit`` defaults to the width of the terminal.
    """
    limit = limit or width()
    if limit is None:
        return text
    return "\n".join(_folded(line, limit) for line in text.splitlines())


def _folded(line: str, limit: int) -> str:
    """Return ``line`` broken into lines of at most ``limit`` characters with its indentation."""
    if len(line) <= limit:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.fill(line, limit, subsequent_indent=indent, break_on_hyphens=False)
