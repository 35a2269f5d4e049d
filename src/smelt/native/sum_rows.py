"""Use dot products of rows for a matrix times one or a few columns."""

from __future__ import annotations

from smelt.native.choose import choose
from smelt.native.kernels.few_columns import FEW_COLUMNS, supports
from smelt.program.instruction import Program


def sum_rows(program: Program) -> None:
    """Choose that kernel, in place, bodies included."""
    choose(program, lambda instance: FEW_COLUMNS if supports(instance) else None)
