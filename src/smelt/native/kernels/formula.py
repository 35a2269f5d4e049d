"""Operators defined by a formula: a C function of one element, generated from the formula.

A loop of the formula becomes a C loop that ends for each element on its own.
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
    """Return the C function ``name`` of ``count`` doubles that computes ``formula``.

    A function without loops is always inlined, which lets compilers vectorize its callers.

    ```
    static IN_LOOPS double softclip_f(const double x0)
    {
        const double t0 = tanh(x0);
        return t0;
    }
    ```
    """
    parameters = [f"x{i}" for i in range(count)]
    m = Statements(DOUBLE, tolerance)
    result = m.scalar(formula(m, *map(m.named, parameters)))
    m.write(f"return {result.name};")
    declared = ", ".join(f"const double {parameter}" for parameter in parameters)
    lines = [f"    {'    ' * line.depth}{line.text}\n" for line in read_lines(m.lines)]
    has_no_loop = all(line.depth == 0 for line in m.lines)
    specifiers = "static IN_LOOPS double" if has_no_loop else "static double"
    return f"{specifiers} {name}({declared})\n{{\n{''.join(lines)}}}\n"


def kernel_of(instruction: str) -> Kernel | None:
    """Return the kernel of a declared elementwise operator, None for others."""
    domain, _, name = instruction.rpartition("::")
    operator = operators.find(domain, name) if domain else None
    if not isinstance(operator, Elementwise):
        return None
    row = operator.row
    return kernel_for(row) if row.floats else _kernel_of_formula(row)


def _kernel_of_formula(row: Row) -> Kernel:
    """Return the kernel that calls the C function of the formula for each element."""
    name = f"{row.domain}_{row.name}".replace(".", "_")
    formula = row.formula
    assert formula is not None

    def element(cx: KernelContext) -> tuple[list[str], str]:
        """Add the function; return no statements, and the C that calls it for one element.

        ``{0}`` is the first operand: ``(float)NAME_f({0})``.
        """
        count = len(cx.instruction.inputs)
        cx.call("IN_LOOPS", IN_LOOPS)
        is_float = cx.type(0).name == "float"
        function_name = f"{name}_f" if is_float else name
        function = cx.call(
            function_name,
            function_of(function_name, formula, count, SINGLE_TOLERANCE if is_float else 0.0),
        )
        operands = ", ".join(f"{{{i}}}" for i in range(count))
        return [], f"({cx.type(0).name}){function}({operands})"

    def emit(cx: KernelContext) -> None:
        """Write the loop over all elements."""
        emit_each(cx, element(cx)[1])

    return Kernel(emit, in_place, element=element)


def instructions() -> list[str]:
    """Return the instruction names of the declared elementwise operators."""
    elementwise = (op for op in operators.all_operators() if isinstance(op, Elementwise))
    return [operator.row.instruction for operator in elementwise]
