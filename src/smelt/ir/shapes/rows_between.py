"""The number of rows that a Slice takes between two symbolic positions."""

from __future__ import annotations

import re

import onnx_ir as ir

from smelt.ir.rows import LONGEST
from smelt.ir.same_shape import Dim
from smelt.ir.symbolic_dims.bounded_sizes import inside_bound
from smelt.ir.symbolic_dims.dim_texts import is_arithmetic
from smelt.ir.symbolic_dims.empty_dims import expression_allowing_zero
from smelt.ir.symbolic_dims.invented_dims import is_invented

_SUM_LESS_ROWS = re.compile(r"\([\w+* ]+\) - ")
"""A sum of names and numbers in parentheses, followed by a subtraction."""

_CUT = re.compile(r"Min\((\w+), \d+\)")
"""A size that is clamped to the rows of a table."""


def rows_between(size: Dim, start: Dim, end: Dim) -> Dim | None:
    """Return the number of rows of an axis of ``size`` from ``start`` to ``end``.

    None if a position may be negative. Of N rows, 2 to N give ``Max(0, N - 2)``, and 0 to 5 give
    ``Min(5, N)``.
    """
    size_text = _text(size)
    if size_text is not None and _takes_all_from_end(size, start, end):
        return size
    if size_text is None or not _is_position(start):
        return None
    if start == 0 and isinstance(end, ir.SymbolicDim) and _ends_two_before(size, end):
        return ir.SymbolicDim(f"Max(0, {end})")
    if not _is_position(end):
        return None
    first, last = (_limited(place, size, size_text) for place in (start, end))
    rows = _rows_from_end(size, start) if last == size_text else None
    if rows is not None:
        return ir.SymbolicDim(f"Min({rows}, {size})")
    rows_left = _rows_before_end(start, size) if last == size_text else None
    if rows_left is not None:
        return rows_left
    if first == "0":
        text = last
    elif last == size_text:
        text = (
            f"Max(0, {size_text} - {start})" if isinstance(start, int) else f"{size_text} - {first}"
        )
    else:
        start_text = f"({first})" if _rows_before_end(start, size) is not None else first
        text = f"Max(0, {last} - {start_text})"
    return ir.SymbolicDim(without_bound(text))


def _takes_all_from_end(size: Dim, start: Dim, end: Dim) -> bool:
    """True for ``x[-N :]`` of N rows, or of min(N, 64) rows, which takes all of them.

    That holds for N = 0, too: ``x[-0 :]`` takes all of no rows.
    """
    if not isinstance(start, ir.SymbolicDim) or not isinstance(size, ir.SymbolicDim):
        return False
    if end != size and not (isinstance(end, int) and end >= LONGEST):
        return False
    if not is_arithmetic(start) or is_invented(str(start)):
        return False
    cut = _CUT.fullmatch(str(size))
    most = size if cut is None else ir.SymbolicDim(cut[1])
    try:
        return str(most + start) == "0"
    except (ValueError, TypeError, ArithmeticError):
        return False


def without_bound(text: str) -> str:
    """Return ``text`` without a ``Max(0, ...)`` that is not needed: N for ``Max(0, (N + 1) - 1)``.

    The Max is not needed if nothing is subtracted in the simplified sum inside it. Any other text
    is returned as it is.
    """
    bounded = inside_bound(text)
    if not _SUM_LESS_ROWS.match(bounded):
        return text
    try:
        difference = str(ir.SymbolicDim(bounded) + 0)
    except (ValueError, TypeError, ArithmeticError):
        return text
    return text if "-" in difference else difference


def _rows_from_end(size: Dim, start: Dim) -> str | None:
    """Return K as text for the start of ``x[max(0, size - K) :]``, the last K rows; else None."""
    skipped_rows = inside_bound(str(start)) if isinstance(start, ir.SymbolicDim) else ""
    if not skipped_rows:
        return None
    try:
        rows = size - ir.SymbolicDim(skipped_rows)
    except (ValueError, TypeError, ArithmeticError):
        return None
    return None if "-" in str(rows) or "(" in str(rows) else str(rows)


def _text(dim: Dim) -> str | None:
    """Return the dim as part of a sum; None for a name that is no arithmetic."""
    if isinstance(dim, int):
        return str(dim)
    if not is_arithmetic(dim):
        return None
    return str(dim) if str(dim).isidentifier() else f"({dim})"


def _limited(place: Dim, size: Dim, size_text: str) -> str:
    """Return ``place`` as text, limited to the end of the axis."""
    if place == size or (isinstance(place, int) and place >= LONGEST):
        return size_text
    if place == 0:
        return "0"
    return str(place) if _rows_before_end(place, size) is not None else f"Min({place}, {size_text})"


def _rows_before_end(place: Dim, size: Dim) -> int | None:
    """Return ``size - place`` if it is a non-negative number: 1 for ``N - 1`` of N; else None."""
    try:
        less = size - place
    except (ValueError, TypeError, ArithmeticError):
        return None
    number = less.value if isinstance(less, ir.SymbolicDim) else str(less)
    return int(number) if number is not None and number.isdecimal() else None


def _ends_two_before(size: Dim, end: ir.SymbolicDim) -> bool:
    """True for ``x[: N - 2]`` of N rows, which takes ``max(0, N - 2)`` rows also for N = 1.

    Its end is then -1, so it takes no row, which other negative ends would not ensure.
    """
    return is_arithmetic(end) and _rows_before_end(end, size) == 2


def _is_position(dim: Dim) -> bool:
    """True if ``dim`` is surely >= 0; an invented symbol may stand for any element."""
    if isinstance(dim, int):
        return dim >= 0
    if not is_arithmetic(dim) or is_invented(str(dim)):
        return False
    return bool(expression_allowing_zero(dim).is_nonnegative)
