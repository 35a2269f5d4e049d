"""Draw the pictures of pass pages, which are text with lines of box characters, as SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from smelt.check.report.kinds import COLOURS, kind_of

CELL, ROW, PAD, SMALL = 8.2, 34.0, 12.0, 7.0
"""Pixels: the width of a character, the height of a row, around the picture, inside a box."""

SIDES = {
    "─": "lr", "│": "ud", "┌": "rd", "┐": "ld", "└": "ru", "┘": "lu",
    "├": "udr", "┤": "udl", "┬": "lrd", "┴": "lru", "┼": "lrud",
}  # fmt: skip
"""Line character to the sides that it joins: left, right, up, down."""

_ARROW = "─>"
_WORDS = re.compile(r"[^ ─│┌┐└┘├┤┬┴┼]+(?: [^ ─│┌┐└┘├┤┬┴┼]+)*")
_OPERATOR = re.compile(r"([A-Z]\w+)\b.*", re.DOTALL)


def pictures_of(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the rows before and the rows after of each picture on the page of a pass.

    A picture begins with ``before`` and goes on while lines are indented; ``after`` stands below
    or beside it. Several pictures may share the ``after`` below the last of them.
    """
    alike: list[list[str]] = []
    for block in re.findall(
        r"^ {4}before {2,}.*\n?(?: {5,}.*\n?| {4}after {2,}.*\n?)*", page, re.M
    ):
        before, after = _sides(block.splitlines())
        alike.append(before)
        if after:
            yield from ((each, after) for each in alike)
            alike = []


def _sides(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the rows of ``before`` and of ``after`` of one picture."""
    sides: dict[str, list[str]] = {"before": [], "after": []}
    name, column = "before", 0
    for given in lines:
        started = re.match(r" {4}(before|after) {2,}", given)
        line = f"{' ' * started.end()}{given[started.end() :]}" if started else given
        name = started[1] if started else name
        beside = re.search(r" {2,}after {2,}", line)
        if beside:
            column = beside.end()
            sides["before"].append(line[: beside.start()])
            sides["after"].append(" " * column + line[column:])
        elif column and name == "before" and not line[column - 2 : column].strip():
            sides["before"].append(line[:column])
            sides["after"].append(" " * column + line[column:])
        else:
            sides[name].append(line)
    return _cut(sides["before"]), _cut(sides["after"])


def _cut(rows: Sequence[str]) -> list[str]:
    """Return ``rows`` without empty ones and without the indent that all have."""
    full = [row.rstrip() for row in rows if row.strip()]
    indent = min((len(row) - len(row.lstrip()) for row in full), default=0)
    return [row[indent:] for row in full]


def svg_of(rows: Sequence[str]) -> str:
    """Return ``rows`` as one SVG element: a box for each text, lines and arrows between them."""
    width = max(map(len, rows), default=0) * CELL + 2 * PAD
    height = len(rows) * ROW + 2 * SMALL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" width="{width:.0f}" '
        f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    ]
    for number, row in enumerate(rows):
        parts += _lines(row, number)
    for number, row in enumerate(rows):
        parts += [_box(found[0], found.start(), number) for found in _texts(row)]
    return "".join([*parts, "</svg>"])


def _texts(row: str) -> Iterator[re.Match[str]]:
    """Yield the texts of a row; the heads of arrows are not text."""
    yield from _WORDS.finditer(row.replace(_ARROW, "──"))


def _lines(row: str, number: int) -> Iterator[str]:
    """Yield a path for each line character, and one for the head of each arrow."""
    middle = PAD / 2 + ROW * number + ROW / 2
    for column, char in enumerate(row):
        x = PAD + column * CELL + CELL / 2
        if char in SIDES:
            ends = {"l": (-CELL / 2, 0), "r": (CELL / 2, 0), "u": (0, -ROW / 2), "d": (0, ROW / 2)}
            moves = [ends[side] for side in SIDES[char]]
            path = "".join(f"M{x:.1f} {middle:.1f}l{dx:.1f} {dy:.1f}" for dx, dy in moves)
            yield f'<path class="wire" d="{path}"/>'
        elif char == ">" and row[column - 1 : column] == "─":
            yield (
                f'<path class="wire" d="M{x - CELL / 2:.1f} {middle:.1f}h{CELL:.1f}'
                f'm-5 -4l5 4l-5 4"/>'
            )


def _box(text: str, column: int, number: int) -> str:
    """Return a text in its box: coloured by kind if it begins with an operator."""
    x, width = PAD + column * CELL, len(text) * CELL
    top = PAD / 2 + ROW * number + 4
    operator = _OPERATOR.fullmatch(text)
    label = (
        f'<text x="{x + width / 2:.1f}" y="{top + 17:.1f}" textLength="{width - 1:.1f}" '
        f'lengthAdjust="spacingAndGlyphs">{escape(text)}</text>'
    )
    if operator is None:
        return f'<g class="value">{label}</g>'
    colour = COLOURS[kind_of(operator[1])]
    return (
        f'<g class="operator"><rect x="{x - 4:.1f}" y="{top:.1f}" width="{width + 8:.1f}" '
        f'height="{ROW - 8:.1f}" rx="5" fill="{colour}"/>{label}</g>'
    )
