"""Row for Det: determinants of small matrices."""

from __future__ import annotations

import numpy as np

from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val

LARGEST = 4
"""The most rows of a matrix; for more, the expansion is less accurate than elimination."""


@writes("Det")
def determinant(c: Call) -> None:
    """Write the Laplace expansion along the first row; each minor is written once."""
    x = c.x()
    size = x.dims[-1]
    if size is None or size != x.dims[-2] or size > LARGEST:
        raise Refused(f"Core ML has no determinants; those of up to {LARGEST} rows become products")
    rows = [take(c, x, np.asarray(row), x.rank - 2) for row in range(size)]
    cells = [
        [take(c, row, np.asarray(column), x.rank - 2) for column in range(size)] for row in rows
    ]
    c.done(_minor(c, cells, tuple(range(size)), {}))


def _minor(
    c: Call, cells: list[list[Val]], columns: tuple[int, ...], known: dict[tuple[int, ...], Val]
) -> Val:
    """Return the minor of ``columns`` and as many of the last rows.

    ``cells`` are the elements by row and column, ``known`` the minors that are written already.
    """
    row = cells[len(cells) - len(columns)]
    if len(columns) == 1:
        return row[columns[0]]
    if columns not in known:
        total: Val | None = None
        for place, column in enumerate(columns):
            rest = columns[:place] + columns[place + 1 :]
            term = c.op("mul", row[column], _minor(c, cells, rest, known))
            total = term if total is None else c.op("sub" if place % 2 else "add", total, term)
        assert total is not None
        known[columns] = total
    return known[columns]
