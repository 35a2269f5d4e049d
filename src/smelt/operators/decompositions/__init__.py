"""Operators of ONNX in terms of more common ones, for consumers without them.

Only what ONNX itself defines by a function body of such operators is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from smelt.operators.decompositions import choices, elementwise, movement, products, statistics
from smelt.operators.decompositions.row import Row

ROWS: Mapping[str, tuple[Row, ...]] = {
    name: rows
    for table in (choices, elementwise, movement, products, statistics)
    for name, rows in table.ROWS.items()
}
"""The decompositions of each operator, the one to prefer first."""
