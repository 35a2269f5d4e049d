"""Operators that a formula defines: a C function of one element, read off the formula itself.

The formula computes with ``Scalar``s, each the name of a C variable or a constant; every operation
writes the statement that defines another. A loop of the formula is a loop of C, which ends for
each element when that element wants no more steps.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from smelt.native.kernels.elementwise import BOOLEANS, FLOATS, emit_each, in_place
from smelt.native.kernels.kernel import Kernel, KernelContext, fill_types, kernel_of, register
from smelt.native.types import C_TYPES
from smelt.operators import all_operators
from smelt.operators.formula import Elementwise, Number, Symbol, Symbolic

DOUBLE = C_TYPES[ir.DataType.DOUBLE]

MASKS = frozenset({"And", "Equal", "Greater", "GreaterOrEqual", "IsNaN", "Less", "LessOrEqual"})
MASKS |= frozenset({"Not", "Or", "Xor"})
"""Operators whose results are true or false."""


VARIABLE = re.compile(r"\bt\d+\b")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of C, so many blocks deep, and the variable that it ``defines``, if any."""

    depth: int
    text: str
    defines: str


class Statements(Symbolic["Scalar"]):
    """The arithmetic of C statements, each by the expression of its elementwise kernel."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._count = self._depth = 0

    def define(self, text: str, *, is_mask: bool = False, fixed: bool = True) -> Scalar:
        """A new variable that starts as the expression ``text``, ``fixed`` if it never changes."""
        name = f"t{self._count}"
        self._count += 1
        words = ("const " if fixed else "") + ("int" if is_mask else DOUBLE.name)
        self.write(f"{words} {name} = {text};", name)
        return Scalar(self, name, is_mask)

    def write(self, text: str, defines: str = "") -> None:
        """One line of C, which defines a variable and does nothing else if that is named."""
        self.lines.append(Line(self._depth, text, defines))

    def scalar(self, number: Number) -> Scalar:
        """``number``, which may be a plain one of Python."""
        if isinstance(number, Scalar):
            return number
        if isinstance(number, bool):
            return Scalar(self, str(int(number)), is_mask=True)
        return Scalar(self, DOUBLE.literal(float(number)))

    def op(self, op_type: str, *inputs: Number) -> Scalar:
        """The variable that holds the result."""
        operands = [self.scalar(number) for number in inputs]
        chosen = op_type == "Where" and all(operand.is_mask for operand in operands)
        table = BOOLEANS if operands[0].is_mask else FLOATS
        text = fill_types(table[op_type], DOUBLE).format(*(operand.name for operand in operands))
        return self.define(text, is_mask=chosen or op_type in MASKS)

    def loop(
        self,
        go_on: Callable[..., Number],
        step: Callable[..., Sequence[Number]],
        state: Sequence[Number],
    ) -> tuple[Scalar, ...]:
        """Results are kept apart until the whole step is done, since they may swap places."""
        given = [self.scalar(number) for number in state]
        carried = [self.define(item.name, is_mask=item.is_mask, fixed=False) for item in given]
        self.write("for (;;) {")
        self._depth += 1
        self.write(f"if (!{self.scalar(go_on(*carried)).name}) break;")
        results = [self.scalar(number) for number in step(*carried)]
        moved = [self.define(item.name, is_mask=item.is_mask) for item in results]
        for variable, result in zip(carried, moved, strict=True):
            self.write(f"{variable.name} = {result.name};")
        self._depth -= 1
        self.write("}")
        return tuple(carried)


class Scalar(Symbol["Scalar"]):
    """A variable or constant of C, a double or a mask, with the operators of Python."""

    __slots__ = ("is_mask", "m", "name")

    def __init__(self, m: Statements, name: str, is_mask: bool = False) -> None:
        self.m = m
        self.name = name
        self.is_mask = is_mask


def function_of(name: str, formula: Callable[..., Number], count: int) -> str:
    """The C function ``name`` of ``count`` doubles that computes ``formula``."""
    parameters = [f"x{i}" for i in range(count)]
    m = Statements()
    result = m.scalar(formula(m, *(Scalar(m, parameter) for parameter in parameters)))
    m.write(f"return {result.name};")
    declared = ", ".join(f"const double {parameter}" for parameter in parameters)
    lines = [f"    {'    ' * line.depth}{line.text}\n" for line in read_lines(m.lines)]
    return f"static double {name}({declared})\n{{\n{''.join(lines)}}}\n"


def read_lines(lines: Sequence[Line]) -> list[Line]:
    """``lines`` without variables that nothing reads, about which compilers warn."""
    kept, read = [], set[str]()
    for line in reversed(lines):
        if line.defines and line.defines not in read:
            continue
        read.update(VARIABLE.findall(line.text))
        kept.append(line)
    return kept[::-1]


def kernel_for(operator: Elementwise) -> Kernel:
    """The kernel that calls the function of ``operator`` for each element."""
    name = f"smelt_{operator.name}"

    def emit(cx: KernelContext) -> None:
        count = len(cx.instruction.inputs)
        function = cx.call(name, function_of(name, operator.formula, count))
        operands = ", ".join(f"{{{i}}}" for i in range(count))
        emit_each(cx, f"({cx.type(0).name}){function}({operands})")

    return Kernel(emit, in_place)


for _operator in all_operators():
    _instruction = f"{_operator.domain}::{_operator.name}"
    if isinstance(_operator, Elementwise) and kernel_of(_instruction) is None:
        register(_instruction, kernel_for(_operator))
