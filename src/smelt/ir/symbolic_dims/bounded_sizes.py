"""Texts of sizes with a bound, ``Max(0, N - 1)`` and ``Min(5, N)``, after further cuts of the axis.

``Max(0, Max(0, N - 1) - 1)`` becomes ``Max(0, N - 2)``. So a size that is cut in a long chain keeps
one bound; SymPy would need milliseconds to read nested bounds.
"""

from __future__ import annotations

import re
from itertools import accumulate

_LESS = re.compile(r"(.+) - (\d+)")
_AT_MOST = re.compile(r"Min\((\d+), (\w+)\)")
_DEPTH_CHANGE = {"(": 1, ")": -1}


def inside_bound(text: str) -> str:
    """Return X of the text ``Max(0, X)``; empty for any other text."""
    if not text.startswith("Max(0, "):
        return ""
    depths = list(accumulate(_DEPTH_CHANGE.get(character, 0) for character in text))
    is_one_call = 0 not in depths[len("Max(") - 1 : -1]
    return text.removeprefix("Max(0, ")[:-1] if is_one_call else ""


def rows_less(size: str, count: int) -> str:
    """Return ``Max(0, size - count)`` as text: the size after ``count`` > 0 rows are removed."""
    unbounded = inside_bound(size) or size
    difference = _LESS.fullmatch(unbounded)
    base, removed = (difference[1], int(difference[2])) if difference else (unbounded, 0)
    return f"Max(0, {base} - {removed + count})"


def rows_at_most(size: str, count: int) -> str:
    """Return ``Min(count, size)`` as text."""
    bounded = _AT_MOST.fullmatch(size)
    return (
        f"Min({min(count, int(bounded[1]))}, {bounded[2]})" if bounded else f"Min({count}, {size})"
    )
