"""Decompositions of ONNX operators into more common ones, for consumers that lack them.

A consumer is a program that reads ONNX files. An operator that ONNX itself defines by a function
body of common operators needs no row here.
"""

from __future__ import annotations

from collections.abc import Mapping

from smelt.operators.decompositions import (
    choices,
    elementwise,
    movement,
    products,
    spellings,
    statistics,
)
from smelt.operators.decompositions.row import Row

_TABLES = (
    *(spellings.ROWS, choices.ROWS, elementwise.ROWS),
    *(movement.ROWS, products.ROWS, statistics.ROWS),
)

ROWS: Mapping[str, tuple[Row, ...]] = {
    name: tuple(row for table in _TABLES for row in table.get(name, ()))
    for table in _TABLES
    for name in table
}
"""The decompositions of each operator, the one to prefer first."""
