"""What a formula writes instead of computing: each operation by its name in ONNX.

Readers that write say what becomes of an operator (``op``), and get all functions and Python's
operators from here.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from smelt.operators.formula.numeric import Number

T = TypeVar("T")


class Symbolic(Generic[T]):
    """The functions of ``Arithmetic``, each as one operator of ONNX."""

    def op(self, op_type: str, *inputs: Number) -> T:
        """The result of one operator; ``inputs`` may be plain numbers of Python."""
        raise NotImplementedError

    def exp(self, x: Number) -> T:
        return self.op("Exp", x)

    def log(self, x: Number) -> T:
        return self.op("Log", x)

    def sqrt(self, x: Number) -> T:
        return self.op("Sqrt", x)

    def sin(self, x: Number) -> T:
        return self.op("Sin", x)

    def cos(self, x: Number) -> T:
        return self.op("Cos", x)

    def floor(self, x: Number) -> T:
        return self.op("Floor", x)

    def abs(self, x: Number) -> T:
        return self.op("Abs", x)

    def isnan(self, x: Number) -> T:
        return self.op("IsNaN", x)

    def equal(self, x: Number, y: Number) -> T:
        return self.op("Equal", x, y)

    def where(self, mask: Number, x: Number, y: Number) -> T:
        return self.op("Where", mask, x, y)

    def power(self, x: Number, y: Number) -> T:
        return self.op("Pow", x, y)

    def maximum(self, x: Number, y: Number) -> T:
        return self.op("Max", x, y)

    def minimum(self, x: Number, y: Number) -> T:
        return self.op("Min", x, y)


class Symbol(Generic[T]):
    """A number that stands for a value computed later; ``m`` is the arithmetic that wrote it."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    m: Symbolic[T]

    def __add__(self, other: Number) -> T:
        return self.m.op("Add", self, other)

    def __radd__(self, other: Number) -> T:
        return self.m.op("Add", other, self)

    def __sub__(self, other: Number) -> T:
        return self.m.op("Sub", self, other)

    def __rsub__(self, other: Number) -> T:
        return self.m.op("Sub", other, self)

    def __mul__(self, other: Number) -> T:
        return self.m.op("Mul", self, other)

    def __rmul__(self, other: Number) -> T:
        return self.m.op("Mul", other, self)

    def __truediv__(self, other: Number) -> T:
        return self.m.op("Div", self, other)

    def __rtruediv__(self, other: Number) -> T:
        return self.m.op("Div", other, self)

    def __neg__(self) -> T:
        return self.m.op("Neg", self)

    def __lt__(self, other: Number) -> T:
        return self.m.op("Less", self, other)

    def __le__(self, other: Number) -> T:
        return self.m.op("LessOrEqual", self, other)

    def __gt__(self, other: Number) -> T:
        return self.m.op("Greater", self, other)

    def __ge__(self, other: Number) -> T:
        return self.m.op("GreaterOrEqual", self, other)

    def __and__(self, other: Number) -> T:
        return self.m.op("And", self, other)

    def __or__(self, other: Number) -> T:
        return self.m.op("Or", self, other)

    def __invert__(self) -> T:
        return self.m.op("Not", self)
