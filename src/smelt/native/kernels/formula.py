"""Operators that a formula defines: a C function of one element, read off the formula itself.

A loop of the formula is a loop of C, which ends for each element when that element wants no more
steps.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from smelt import operators
from smelt.native.kernels.elementwise import emit_each, in_place, kernel_for
from smelt.native.kernels.kernel import Kernel, KernelContext
from smelt.native.kernels.lane_math import IN_LOOPS
from smelt.native.kernels.statements import Statements, read_lines
from smelt.native.types import C_TYPES
from smelt.operators.elementwise import Row
from smelt.operators.formula import Elementwise, Number
from smelt.operators.numeric import SINGLE_TOLERANCE

DOUBLE = C_TYPES[ir.DataType.DOUBLE]


def function_of(
    name: str, formula: Callable[..., Number], count: int, tolerance: float = 0.0
) -> str:
    """The C function ``name`` of ``count`` doubles that computes ``formula``; one without loops
    becomes part of what calls it, so that compilers make vectors of it."""
    parameters = [f"x{i}" for i in range(count)]
    m = Statements(DOUBLE, tolerance)
    result = m.scalar(formula(m, *map(m.named, parameters)))
    m.write(f"return {result.name};")
    declared = ", ".join(f"const double {parameter}" for parameter in parameters)
    lines = [f"    {'    ' * line.depth}{line.text}\n" for line in read_lines(m.lines)]
    straight = all(line.depth == 0 for line in m.lines)
    words = "static IN_LOOPS double" if straight else "static double"
    return f"{words} {name}({declared})\n{{\n{''.join(lines)}}}\n"


def kernel_of(instruction: str) -> Kernel | None:
    """The kernel of a declared elementwise operator, by its name in a Program; None for others."""
    domain, _, name = instruction.rpartition("::")
    operator = operators.find(domain, name) if domain else None
    if not isinstance(operator, Elementwise):
        return None
    row = operator.row
    return kernel_for(row) if row.floats else _kernel_of_formula(row)


def _kernel_of_formula(row: Row) -> Kernel:
    """The kernel that calls the function of a formula for each element."""
    name = f"{row.domain}_{row.name}".replace(".", "_")
    formula = row.formula
    assert formula is not None

    def element(cx: KernelContext) -> tuple[list[str], str]:
        count = len(cx.instruction.inputs)
        cx.call("IN_LOOPS", IN_LOOPS)
        narrow = cx.type(0).name == "float"
        own = f"{name}_f" if narrow else name
        function = cx.call(
            own, function_of(own, formula, count, SINGLE_TOLERANCE if narrow else 0.0)
        )
        operands = ", ".join(f"{{{i}}}" for i in range(count))
        return [], f"({cx.type(0).name}){function}({operands})"

    def emit(cx: KernelContext) -> None:
        emit_each(cx, element(cx)[1])

    return Kernel(emit, in_place, element=element)


def instructions() -> list[str]:
    """What Programs call the declared elementwise operators."""
    found = (op for op in operators.all_operators() if isinstance(op, Elementwise))
    return [operator.row.instruction for operator in found]
