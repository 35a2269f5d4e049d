"""Texts of sizes with a bound, ``Max(0, N - 1)`` and ``Min(5, N)``, and what is cut of them again.

``Max(0, Max(0, N - 1) - 1)`` is ``Max(0, N - 2)``. A size that is cut in a long chain keeps one
bound so, where SymPy would take milliseconds to read the bounds within it.
"""

from __future__ import annotations

import re
from itertools import accumulate

_LESS = re.compile(r"(.+) - (\d+)")
_AT_MOST = re.compile(r"Min\((\d+), (\w+)\)")


def inside_bound(text: str) -> str:
    """X of ``Max(0, X)``; empty for another text."""
    if not text.startswith("Max(0, "):
        return ""
    depths = list(accumulate((c == "(") - (c == ")") for c in text))
    is_one_call = 0 not in depths[len("Max(") - 1 : -1]
    return text.removeprefix("Max(0, ")[:-1] if is_one_call else ""


def rows_less(size: str, count: int) -> str:
    """``size`` without ``count`` rows, at least 0: ``Max(0, size - count)``; ``count`` > 0."""
    inside = inside_bound(size) or size
    less = _LESS.fullmatch(inside)
    rest, before = (less[1], int(less[2])) if less else (inside, 0)
    return f"Max(0, {rest} - {before + count})"


def rows_at_most(size: str, count: int) -> str:
    """``size``, at most ``count`` rows: ``Min(count, size)``."""
    bounded = _AT_MOST.fullmatch(size)
    return (
        f"Min({min(count, int(bounded[1]))}, {bounded[2]})" if bounded else f"Min({count}, {size})"
    )
