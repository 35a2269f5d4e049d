"""What all nodes of one MIL function share: values written so far, constants, precision."""

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
"""Integers that ONNX wraps to 8 or 16 bits, while Core ML computes them in 32 bits."""


@dataclass
class Scope:
    """The MIL values of the ONNX values in one graph; ``outer`` is the scope of the graph around
    it.

    One ONNX value may exist in several element types: ``values`` has all of them by value and
    type, ``first`` the one that its node wrote.
    """

    values: dict[tuple[ir.Value, Element], Val] = field(default_factory=dict)
    first: dict[ir.Value, Val] = field(default_factory=dict)
    outer: Scope | None = None

    def find(self, value: ir.Value, element: Element) -> Val | None:
        """Return ``value`` in the type ``element``, from this or an outer graph; None
        if missing.
        """
        scope: Scope | None = self
        while scope is not None:
            if (value, element) in scope.values:
                return scope.values[value, element]
            scope = scope.outer
        return None

    def original(self, value: ir.Value) -> Val | None:
        """Return ``value`` in the type in which its node wrote it; None if it is not written."""
        scope: Scope | None = self
        while scope is not None:
            if value in scope.first:
                return scope.first[value]
            scope = scope.outer
        return None

    def add(self, value: ir.Value, written: Val) -> None:
        """Record ``written`` as a form of ``value``."""
        self.values[value, written.element] = written
        self.first.setdefault(value, written)


@dataclass
class Facts:
    """What all nodes of one function share.

    ``half`` is True for precision fp16; nodes or operators in ``keep``, and the nodes ``exact``,
    stay in float32.
    ``lower_bounds`` has the least size of each symbolic dim. ``dry`` only tries whether a node can
    be written, for ``computes``. ``compact`` stores weights as palettes or sparse. ``Emission``
    explains ``clamped`` and ``may_overflow``. ``stand_ins`` holds what those constants became, by
    the numbers that replace infinity.
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
    stand_ins: dict[tuple[object, ...], Val] = field(default_factory=dict)
    narrow_bounds: NarrowBounds = field(default_factory=NarrowBounds)
    may_overflow: dict[str, str] = field(default_factory=dict)
    exact: frozenset[ir.Node] = frozenset()
    dry: bool = False
    compact: bool = False

    def keeps(self, node: ir.Node) -> bool:
        """True if ``node`` stays in float32 by its name, its operator or its operands."""
        return node.op_type in self.keep or (node.name or "") in self.keep or node in self.exact

    def element_of(self, dtype: ir.DataType | None, *, half: bool) -> Element:
        """Return the MIL element type of an ONNX type; ``half`` makes float32 float16.

        All integers become int32, uint32 with the same bits. float64, which only the option
        ``float64`` permits, counts as float32. Raises Refused E402 for other types.
        """
        if dtype in (ir.DataType.FLOAT, ir.DataType.DOUBLE):
            return Element.FLOAT16 if half else Element.FLOAT32
        if dtype == ir.DataType.FLOAT16:
            return Element.FLOAT16
        if dtype == ir.DataType.BOOL:
            return Element.BOOL
        if dtype in INTEGERS or dtype == ir.DataType.UINT32:
            return Element.INT32
        name = "?" if dtype is None else dtype.name.lower()
        raise Refused(f"Core ML computes no {name}", "cast to float32 or int32", "E402")
