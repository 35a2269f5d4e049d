"""HTML tables and escaped text for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

SHOWN = 200
"""Maximum number of characters of one text."""

CELL = "text-align:left;vertical-align:top;padding:1px 10px 1px 0"
NUMBER = "text-align:right;vertical-align:top;padding:1px 10px 1px 0"


def escaped(text: object, limit: int = SHOWN) -> str:
    """Return ``text`` safe for HTML content and quoted attributes: no markup, no control
    characters.

    Longer texts are cut to ``limit`` characters.
    """
    printable = "".join(
        char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in str(text)
    )
    if len(printable) > limit:
        printable = f"{printable[: limit - 1]}\N{HORIZONTAL ELLIPSIS}"
    return html.escape(printable, quote=True)


def table(rows: Sequence[Sequence[object]], header: Sequence[str] = ()) -> str:
    """Return an HTML table of escaped cells; numbers are right-aligned."""
    lines = ['<table style="border-collapse:collapse">']
    if header:
        cells = "".join(f'<th style="{CELL}">{escaped(cell)}</th>' for cell in header)
        lines.append(f"<thead><tr>{cells}</tr></thead>")
    lines.append("<tbody>")
    lines += [f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows]
    return "\n".join([*lines, "</tbody></table>"])


def _cell(cell: object) -> str:
    """Return a table cell; a float has three significant digits."""
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        number = f"{cell:,}" if isinstance(cell, int) else f"{cell:.3g}"
        return f'<td style="{NUMBER}">{escaped(number)}</td>'
    return f'<td style="{CELL}">{escaped(cell)}</td>'


def titled(title: str, *parts: str) -> str:
    """Return a ``div`` with the text ``title`` above ``parts``, which are HTML."""
    return "\n".join([f"<div><p><strong>{escaped(title)}</strong></p>", *parts, "</div>"])
