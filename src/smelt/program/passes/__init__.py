"""Passes over a Program: each is a function that edits it in place and returns whether it changed
it.

``optimize`` has their order: compose layouts, sort and fold first, decompose once, and do not fold
afterwards, since a fold would undo what the decomposition canonicalized.
"""

from __future__ import annotations

from smelt.errors import UsageError
from smelt.program.instruction import Program
from smelt.program.passes import (
    dead_code_elimination,
    dot_decomposer,
    dot_dimension_sorter,
    exec_order,
    last_use,
    layout_composition,
    operand_layout,
    slot_numbering,
    transpose_folding,
)

__all__ = ["optimize"]


def optimize(
    program: Program,
    *,
    decompose: bool = True,
    strided: bool = False,
    pipeline: str = "default",
) -> Program:
    """Run all passes over ``program`` in place, and return it; a second time changes nothing.

    ``decompose=False`` leaves DotGenerals as they are, for targets that contract any dims. With
    ``strided``, for targets that read matrices with any strides, a DotGeneral stays if each batch
    element is a matrix product of the operands as they lie; only other operands are transposed.

    ``pipeline="exec"`` runs the passes of ``exec_order`` instead: sort, fold, decompose, eliminate,
    last uses. Raises UsageError E602 for another pipeline.
    """
    if pipeline == "exec":
        return exec_order.run(program)
    if pipeline != "default":
        raise UsageError(
            "E602",
            f"{pipeline!r} is not a pipeline of Programs",
            why="Programs have the pipelines default and exec",
            fix="optimize(program, pipeline='exec')",
        )
    for body in program.bodies:
        optimize(body.program, decompose=decompose, strided=strided)
    layout_composition.run(program)
    transpose_folding.run(program, across_reshapes=strided)
    dot_dimension_sorter.run(program, strided=strided)
    if strided:
        operand_layout.run(program)
    if decompose:
        dot_decomposer.run(program, keep=lambda dot: strided)
        layout_composition.run(program)
    dead_code_elimination.run(program)
    slot_numbering.run(program)
    last_use.run(program)
    return program
