"""What sizes of a run answer stands in ``told.txt``, which is read when an entry changes.

A row is an expression over sizes with bounds: ``B`` from 1 to 16, ``S`` from 2 to 9, ``Z`` from 0
to 3. ``of(a)`` tells of one size, ``both(a, b)`` of two: sums, quotients, comparisons and choices.
``PYTHONPATH=src:tests python tests/program/test_told.py`` writes the entries again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from pathlib import Path

import pytest
from recorded import rows, told, write

from smelt.program import run_sizes
from smelt.program.run_rows import count_rows, first_row
from smelt.program.run_sizes import Dim, Size, Undecided, with_bounds

TABLE = Path(__file__).with_name("told.txt")
ARITHMETIC = (operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod)
COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
CHOICES = (run_sizes.larger, run_sizes.smaller, run_sizes.zero_if_empty)
QUESTIONS = (run_sizes.same, run_sizes.surely_below)


def asked(question: Callable[..., object], *sizes: Dim) -> str:
    """Return the answer as text, with its bounds; ``?`` if only a run has it."""
    try:
        return with_bounds(question(*sizes))
    except Undecided:
        return "?"
    except ZeroDivisionError:
        return "by zero"


def both(a: Dim, b: Dim) -> str:
    """Return what two sizes answer, in either order."""
    ways = (*ARITHMETIC, *COMPARISONS, *CHOICES, *QUESTIONS)
    return "; ".join(asked(way, x, y) for x, y in ((a, b), (b, a)) for way in ways)


def of(a: Dim) -> str:
    """Return what one size answers."""
    taken = ((0, 3, 1), (1, -1, 2), (-1, -9, -2), (2, 2**63 - 1, 3))
    answers = [asked(run_sizes.maybe_one, a), asked(lambda x: run_sizes.is_empty([4, x]), a)]
    answers += [asked(bool, a), asked(hash, a - a), asked(operator.neg, a)]
    answers += [asked(lambda x, by=by: run_sizes.ceil_div(x, by), a) for by in (1, 2, 7)]
    answers += [asked(lambda x, c=cut: count_rows(x, c), a) for cut in taken]
    answers += [asked(lambda x, c=cut: first_row(x, c), a) for cut in taken]
    return "; ".join([with_bounds(a), *answers])


NAMES = {
    "both": both,
    "of": of,
    "B": Size.named("B", 1, 16),
    "S": Size.named("S", 2, 9),
    "Z": Size.named("Z", 0, 3),
    "larger": run_sizes.larger,
    "smaller": run_sizes.smaller,
}


def entry(row: str) -> str:
    """Return the entry of a row."""
    return told(row, NAMES)


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_sizes_answer_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/program/test_told.py"


if __name__ == "__main__":
    write(TABLE, entry)
