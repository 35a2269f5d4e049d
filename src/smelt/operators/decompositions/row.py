"""One decomposition: the operators that it writes, and the function that builds them.

Each function takes a ``Call``, the node to replace, and returns the value that replaces its result.
It returns None, with nothing built, for nodes to which the decomposition does not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.ir.constants import Constants

MOVES = frozenset(
    (
        *("Expand", "Flatten", "Gather", "Identity", "Reshape"),
        *("Slice", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
    )
)
"""Operators whose results have elements of their first input only."""

Values: TypeAlias = "ir.Value | tuple[ir.Value, ...]"


@dataclass(frozen=True)
class Call:
    """A node to replace: its inputs, all its attributes with ONNX's defaults, the builder."""

    b: Builder
    node: ir.Node
    attributes: Mapping[str, Any]
    constants: Constants

    def __getitem__(self, index: int) -> ir.Value:
        """Return input ``index``, which must be present."""
        value = self.node.inputs[index]
        assert value is not None
        return value

    def get(self, index: int) -> ir.Value | None:
        """Return input ``index``; None if it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    @property
    def inputs(self) -> list[ir.Value]:
        """The inputs that are present."""
        return [value for value in self.node.inputs if value is not None]

    def is_float(self) -> bool:
        """True if the first input holds floating-point numbers."""
        dtype = self[0].dtype
        return dtype is not None and dtype.is_floating_point()

    def sizes(self, value: ir.Value | None = None) -> tuple[int, ...] | None:
        """Return the shape of ``value``, by default the first input, if all of it is numbers."""
        value = self[0] if value is None else value
        if value.shape is None:
            return None
        dims = tuple(dim for dim in value.shape if type(dim) is int)
        return dims if len(dims) == len(value.shape) else None

    def rank(self) -> int | None:
        """Return the number of dims of the first input, if it is known."""
        return None if self[0].shape is None else len(self[0].shape)

    def ints(self, index: int) -> tuple[int, ...] | None:
        """Return input ``index`` as integers; None if it is absent or no constant."""
        value = self.get(index)
        return None if value is None else self.constants.ints(value)

    def op(self, op_type: str, *inputs: ir.Value | float | None, **attributes: Any) -> ir.Value:
        """Build one node; a number becomes a constant of the type of the first input."""
        values = [self.b.const_like(x, self[0]) if isinstance(x, float) else x for x in inputs]
        return self.b.op(op_type, *values, **attributes)


Body: TypeAlias = Callable[[Call], "Values | None"]
"""Builds the results of a call; None, with nothing built, if it does not apply."""


def of_floats(body: Callable[[Call], ir.Value | None]) -> Body:
    """Return ``body`` for floating-point operands only."""
    return lambda c: body(c) if c.is_float() else None


@dataclass(frozen=True)
class Row:
    """A decomposition; ``makes`` has the names of the operators that it writes, with spaces
    between.
    """

    makes: str
    body: Body

    def operators(self) -> Sequence[str]:
        """Return the names that ``makes`` lists."""
        return self.makes.split()
