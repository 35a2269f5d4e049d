"""What all nodes of one emission share: values written so far, constants, precision."""

from __future__ import annotations

from dataclasses import dataclass, field

import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.mlpackage.program import Element
from smelt.targets.coreml.wide_integers import NarrowBounds
from smelt.targets.coreml.writer import Refused, Val, Writer

INTEGERS = frozenset(
    {
        ir.DataType.INT64,
        ir.DataType.INT32,
        ir.DataType.INT16,
        ir.DataType.INT8,
        ir.DataType.UINT8,
        ir.DataType.UINT16,
    }
)
NARROW = INTEGERS - {ir.DataType.INT64, ir.DataType.INT32}
"""Integers that wrap around earlier than those of Core ML."""


@dataclass
class Scope:
    """The values of one graph and of those around it, by ONNX value and element type."""

    values: dict[tuple[ir.Value, Element], Val] = field(default_factory=dict)
    first: dict[ir.Value, Val] = field(default_factory=dict)
    outer: Scope | None = None

    def find(self, value: ir.Value, element: Element) -> Val | None:
        """Return ``value`` with elements of that type, if it exists already."""
        scope: Scope | None = self
        while scope is not None:
            if (value, element) in scope.values:
                return scope.values[value, element]
            scope = scope.outer
        return None

    def original(self, value: ir.Value) -> Val | None:
        """Return ``value`` as it was written first."""
        scope: Scope | None = self
        while scope is not None:
            if value in scope.first:
                return scope.first[value]
            scope = scope.outer
        return None

    def add(self, value: ir.Value, written: Val) -> None:
        """Add ``value``, or the same value with another element type."""
        self.values[value, written.element] = written
        self.first.setdefault(value, written)


@dataclass
class Facts:
    """What all calls of one emission share: the writer, constants, precision, opset.

    ``clamped`` maps constants that float16 holds as infinity or 0 only, and that became another of
    its numbers, to their readers; ``stand_ins`` holds what they became, by operator.
    ``may_overflow`` maps nodes whose int64 results may be beyond 32 bits to their operators.
    """

    writer: Writer
    half: bool
    keep: frozenset[str]
    opset: int
    scope: Scope = field(default_factory=Scope)
    constants: Constants = field(default_factory=Constants)
    bounds: IntegerBounds = field(default_factory=IntegerBounds)
    lower_bounds: dict[str, int] = field(default_factory=dict)
    clamped: dict[str, str] = field(default_factory=dict)
    stand_ins: dict[tuple[ir.Value, Element, str], Val] = field(default_factory=dict)
    narrow_bounds: NarrowBounds = field(default_factory=NarrowBounds)
    may_overflow: dict[str, str] = field(default_factory=dict)
    dry: bool = False
    compact: bool = False

    def keeps(self, node: ir.Node) -> bool:
        """True if ``node`` stays in float32 by its name or its operator."""
        return node.op_type in self.keep or (node.name or "") in self.keep

    def element_of(self, dtype: ir.DataType | None, *, half: bool) -> Element:
        """Return the element type for a value of an ONNX type; raises Refused E402."""
        if dtype == ir.DataType.FLOAT:
            return Element.FLOAT16 if half else Element.FLOAT32
        if dtype == ir.DataType.FLOAT16:
            return Element.FLOAT16
        if dtype == ir.DataType.BOOL:
            return Element.BOOL
        if dtype in INTEGERS:
            return Element.INT32
        name = "?" if dtype is None else dtype.name.lower()
        raise Refused(f"Core ML computes no {name}", "cast to float32 or int32", "E402")
