"""Let products with a column or a few on one side be summed along the rows of the other."""

from __future__ import annotations

from smelt.native.choose import choose
from smelt.native.kernels.few_columns import FEW_COLUMNS, takes
from smelt.program.instruction import Program


def sum_rows(program: Program) -> None:
    """Choose that kernel, in place, for the instructions of bodies, too."""
    choose(program, lambda instance: FEW_COLUMNS if takes(instance) else None)
