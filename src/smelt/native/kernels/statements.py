"""Formulas as C statements: each operation defines a variable by the expression of its row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from smelt.native.types import CType, fill_types
from smelt.operators.elementwise import row_of
from smelt.operators.formula import Arithmetic, Number, Symbol

VARIABLE = re.compile(r"\bt\d+\b")
ATOM = re.compile(r"[\w.{}]+|\w+\([^()]*\)")
"""Matches expressions that need no parentheses."""

BOUND = {"Min": "{1} <= {0} ? {1} : {0}", "Max": "{1} >= {0} ? {1} : {0}"}
"""Max and Min with a constant, by one comparison that keeps NaN: GCC does not vectorize two."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of C at a block depth; ``defines`` is the constant that it defines, ``value`` its
    value.
    """

    depth: int
    text: str
    defines: str = ""
    value: str = ""


class Statements(Arithmetic):
    """Arithmetic that writes C statements for elements of one type. Masks are ints."""

    def __init__(self, type_: CType, tolerance: float = 0.0) -> None:
        self.type = type_
        self.tolerance = tolerance
        self.lines: list[Line] = []
        self._count = self._depth = 0

    def named(self, name: str) -> Scalar:
        """Return the number in the C variable ``name``."""
        return Scalar(self, name)

    def define(self, text: str, *, is_mask: bool = False, fixed: bool = True) -> Scalar:
        """Return a new variable with the initial value ``text``; ``fixed`` makes it const."""
        name = f"t{self._count}"
        self._count += 1
        words = ("const " if fixed else "") + ("int" if is_mask else self.type.name)
        value = text if fixed else ""
        self.lines.append(Line(self._depth, f"{words} {name} = {text};", name, value))
        return Scalar(self, name, is_mask)

    def write(self, text: str) -> None:
        """Add one line of C."""
        self.lines.append(Line(self._depth, text))

    def scalar(self, number: Number) -> Scalar:
        """Return ``number`` as a Scalar."""
        if isinstance(number, Scalar):
            return number
        if isinstance(number, bool):
            return Scalar(self, str(int(number)), is_mask=True)
        return Scalar(self, self.type.literal(float(number)))

    def op(self, op_type: str, *inputs: Number) -> Scalar:
        """Return a new variable with the result of ``op_type``."""
        row = row_of(op_type)
        assert row is not None
        operands = [self.scalar(number) for number in inputs]
        chosen = op_type == "Where" and all(operand.is_mask for operand in operands)
        text = row.booleans if operands[0].is_mask else row.floats
        if op_type in BOUND and isinstance(inputs[1], int | float) and inputs[1] == inputs[1]:
            text = BOUND[op_type]
        names = [
            operand.name if ATOM.fullmatch(operand.name) else f"({operand.name})"
            for operand in operands
        ]
        filled = fill_types(text, self.type).format(*names)
        return self.define(filled, is_mask=chosen or row.is_test)

    def loop(
        self,
        go_on: Callable[..., Number],
        step: Callable[..., Sequence[Number]],
        state: Sequence[Number],
    ) -> tuple[Scalar, ...]:
        """Write a loop over ``state`` and return its last values.

        New values are first computed into other variables, because they may swap.

        ```
        for (;;) {
            if (!t2) break;
            const float t3 = t0 * 2.0f;
            t0 = t3;
        }
        ```
        """
        initial = [self.scalar(number) for number in state]
        variables = [self.define(item.name, is_mask=item.is_mask, fixed=False) for item in initial]
        self.write("for (;;) {")
        self._depth += 1
        self.write(f"if (!{self.scalar(go_on(*variables)).name}) break;")
        results = [self.scalar(number) for number in step(*variables)]
        new_values = [self.define(item.name, is_mask=item.is_mask) for item in results]
        for variable, result in zip(variables, new_values, strict=True):
            self.write(f"{variable.name} = {result.name};")
        self._depth -= 1
        self.write("}")
        return tuple(variables)


class Scalar(Symbol["Scalar"]):
    """A C variable or constant, a number or a mask, with Python's operators."""

    __slots__ = ("is_mask", "m", "name")

    m: Statements

    def __init__(self, m: Statements, name: str, is_mask: bool = False) -> None:
        self.m = m
        self.name = name
        self.is_mask = is_mask


def read_lines(lines: Sequence[Line]) -> list[Line]:
    """Return ``lines`` without definitions of unread variables, about which compilers warn."""
    reversed_lines, read = [], set[str]()
    for line in reversed(lines):
        if line.defines and line.defines not in read:
            continue
        read.update(VARIABLE.findall(line.text))
        reversed_lines.append(line)
    return reversed_lines[::-1]


def read_once(lines: Sequence[Line], result: str) -> tuple[list[str], str]:
    """Return loop-free statements as an expression for ``result``, and the statements before it.

    A variable that is read once is substituted, so behind a ``?`` it is computed only if chosen.
    """
    reads = Counter(VARIABLE.findall(" ".join([*(line.value for line in lines), result])))
    within: dict[str, str] = {}
    before = []
    for line in lines:
        value = VARIABLE.sub(lambda found: within.get(found[0], found[0]), line.value)
        if reads[line.defines] == 1:
            within[line.defines] = value if ATOM.fullmatch(value) else f"({value})"
        elif reads[line.defines]:
            before.append(line.text.replace(line.value, value))
    return before, VARIABLE.sub(lambda found: within.get(found[0], found[0]), result)
