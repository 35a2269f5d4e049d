"""The registry of rows. A row is the function that writes the MIL operations of one ONNX node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from smelt.registry import Registry, modules_of, owner_of
from smelt.targets.coreml.call import Call

Row: TypeAlias = Callable[[Call], None]
ROWS: Registry[str, Row] = Registry(
    "E651", lambda op_type: f"rows of {op_type}", modules_of("smelt.targets.coreml.rows")
)


def writes(*op_types: str) -> Callable[[Row], Row]:
    """Decorate a row to register it for the ONNX operators ``op_types``."""

    def register(row: Row) -> Row:
        """Return ``row`` after registering it for each operator."""
        for op_type in op_types:
            ROWS.add(op_type, row, owner_of(row))
        return row

    return register
