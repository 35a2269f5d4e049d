"""Symbolic numbers of formulas: Python's operators build ONNX operators instead of computing."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

from smelt.operators.numeric import Number

T_co = TypeVar("T_co", covariant=True)


class Writer(Protocol[T_co]):
    """An arithmetic whose numbers have the type ``T_co``."""

    def op(self, op_type: str, *inputs: Number) -> T_co:
        """Return the number that represents the operator's result."""


class Symbol(Generic[T_co]):
    """A number that stands for a value computed later; ``m`` is the arithmetic that built it."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    m: Writer[T_co]

    def __add__(self, other: Number) -> T_co:
        return self.m.op("Add", self, other)

    def __radd__(self, other: Number) -> T_co:
        return self.m.op("Add", other, self)

    def __sub__(self, other: Number) -> T_co:
        return self.m.op("Sub", self, other)

    def __rsub__(self, other: Number) -> T_co:
        return self.m.op("Sub", other, self)

    def __mul__(self, other: Number) -> T_co:
        return self.m.op("Mul", self, other)

    def __rmul__(self, other: Number) -> T_co:
        return self.m.op("Mul", other, self)

    def __truediv__(self, other: Number) -> T_co:
        return self.m.op("Div", self, other)

    def __rtruediv__(self, other: Number) -> T_co:
        return self.m.op("Div", other, self)

    def __neg__(self) -> T_co:
        return self.m.op("Neg", self)

    def __lt__(self, other: Number) -> T_co:
        return self.m.op("Less", self, other)

    def __le__(self, other: Number) -> T_co:
        return self.m.op("LessOrEqual", self, other)

    def __gt__(self, other: Number) -> T_co:
        return self.m.op("Greater", self, other)

    def __ge__(self, other: Number) -> T_co:
        return self.m.op("GreaterOrEqual", self, other)

    def __and__(self, other: Number) -> T_co:
        return self.m.op("And", self, other)

    def __or__(self, other: Number) -> T_co:
        return self.m.op("Or", self, other)

    def __invert__(self) -> T_co:
        return self.m.op("Not", self)
