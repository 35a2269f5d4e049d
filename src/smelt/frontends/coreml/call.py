"""``Call``: one operation of a MIL program, as the readers in this package get it.

MIL is Core ML's program language. A reader adds ONNX nodes that compute the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from smelt.errors import Unsupported
from smelt.frontends.coreml.types import onnx_type
from smelt.ir.build import Attribute
from smelt.ir.same_shape import Dim
from smelt.mlpackage.program import Argument, Constant, Operation, TensorType

if TYPE_CHECKING:
    from smelt.frontends.coreml.lowering import Scope

END = 2**63 - 1
"""A slice end that is larger than every size."""


class Call:
    """An operation with its arguments; its methods add nodes to the graph of ``scope``."""

    def __init__(self, operation: Operation, scope: Scope) -> None:
        self.operation = operation
        self.scope = scope
        self.builder = scope.builder

    # -- arguments ---------------------------------------------------------------------------

    @cached_property
    def arguments(self) -> dict[str, Sequence[Argument]]:
        """The arguments by parameter, each a name or a constant.

        Those of constexpr operators are attributes before iOS 18.
        """
        attributes = {
            name: [value] for name, value in self.operation.attributes.items() if name != "name"
        }
        return {**attributes, **self.operation.inputs}

    def known(self, name: str) -> Any:
        """Return the argument of the parameter ``name``: a value or a Constant; None if missing."""
        bound = self.arguments.get(name)
        if not bound:
            return None
        if len(bound) > 1:
            raise self.refused(f"{name} has {len(bound)} arguments instead of one")
        return self.scope.known(bound[0])

    def has(self, name: str) -> bool:
        """True if the parameter ``name`` is bound."""
        return bool(self.arguments.get(name))

    def optional(self, name: str) -> ir.Value | None:
        """Return the value of an optional parameter; a constant becomes a weight of the model."""
        known = self.known(name)
        return None if known is None else self.scope.as_value(known)

    def value(self, name: str) -> ir.Value:
        """Return the value of a required parameter."""
        value = self.optional(name)
        if value is None:
            raise self.refused(f"its parameter {name} is missing")
        return value

    @property
    def x(self) -> ir.Value:
        """The value of the parameter ``x``."""
        return self.value("x")

    def values(self, name: str) -> list[ir.Value]:
        """Return the values of a variadic parameter."""
        return [self.scope.as_value(self.scope.known(each)) for each in self.arguments[name]]

    def constant(self, name: str) -> Constant | None:
        """Return the Constant that ``name`` is bound to; None if it is absent or computed."""
        known = self.known(name)
        return known if isinstance(known, Constant) else None

    def array(self, name: str, default: Any = None) -> np.ndarray:
        """Return the array of a parameter that must be constant; raises E121 if it is computed."""
        known = self.known(name)
        if known is None:
            if default is None:
                raise self.refused(f"its parameter {name} is missing")
            return np.asarray(default)
        if not isinstance(known, Constant) or not isinstance(known.type, TensorType):
            raise self.refused(f"{name} is computed, where Core ML asks for a constant")
        return np.asarray(known.value)

    def _one(self, name: str, default: Any) -> Any:
        """Return the only element of a constant; raises E121 for several elements."""
        array = self.array(name, default)
        if array.size != 1:
            raise self.refused(f"{name} has {array.size} elements instead of one")
        return array.reshape(()).item()

    def integer(self, name: str, default: int | None = None) -> int:
        """Return a constant integer."""
        return int(self._one(name, default))

    def number(self, name: str, default: float | None = None) -> float:
        """Return a constant number."""
        return float(self._one(name, default))

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a constant boolean."""
        return bool(self._one(name, default))

    def word(self, name: str, default: str | None = None) -> str:
        """Return a constant text."""
        return str(self._one(name, default))

    def integers(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """Return a constant vector of integers."""
        if self.known(name) is None and default is not None:
            return list(default)
        return [int(each) for each in self.array(name).reshape(-1)]

    def i64(self, name: str) -> ir.Value:
        """Return an int32 argument as int64, the type of sizes and indices in ONNX."""
        constant = self.constant(name)
        if constant is not None:
            return self.builder.constant(np.asarray(constant.value).astype(np.int64))
        return self.builder.cast(self.value(name), ir.DataType.INT64)

    # -- nodes -------------------------------------------------------------------------------

    def op(
        self,
        op_type: str,
        *inputs: ir.Value | None,
        domain: str = "",
        **attributes: Attribute | None,
    ) -> ir.Value:
        """Add a node of an ONNX operator and return its output."""
        return self.builder.op(op_type, *inputs, domain=domain, name=None, **attributes)

    def ints(self, numbers: Sequence[int] | int) -> ir.Value:
        """Return an int64 constant: rank 0 for an int, rank 1 for a sequence."""
        return self.builder.const_i64(numbers)

    def filled(self, number: float, like: ir.Value) -> ir.Value:
        """Return a rank-0 constant in the element type of ``like``."""
        return self.builder.const_like(number, like)

    def like(self, name: str, like: ir.Value) -> ir.Value:
        """Return the argument ``name`` in the element type of ``like``.

        Since iOS 17, parameters of an activation may be wider than its input.
        """
        value = self.value(name)
        if like.dtype is None or value.dtype == like.dtype:
            return value
        constant = self.constant(name)
        if constant is not None:
            return self.builder.constant(np.asarray(constant.value).astype(like.dtype.numpy()))
        return self.builder.cast(value, like.dtype)

    def transposed(self, x: ir.Value, perm: Sequence[int]) -> ir.Value:
        """Return ``x`` with its dims in the order ``perm``."""
        order = list(perm)
        return x if order == list(range(len(order))) else self.op("Transpose", x, perm=order)

    def flipped(self, name: str) -> ir.Value:
        """Return the argument ``name`` with its last two axes swapped; a constant is folded."""
        constant = self.constant(name)
        if constant is not None:
            return self.scope.shared.flipped(constant)
        value = self.value(name)
        order = list(range(self.rank(value)))
        order[-2:] = [order[-1], order[-2]]
        return self.op("Transpose", value, perm=order)

    # -- facts -------------------------------------------------------------------------------

    def rank(self, x: ir.Value) -> int:
        """Return the rank of ``x``; raises E121 if it is unknown."""
        if x.shape is None:
            raise self.refused(f"the rank of {x.name!r} is unknown")
        return len(x.shape)

    def axis(self, name: str, rank: int, default: int | None = None) -> int:
        """Return a constant axis as a number from 0 to ``rank - 1``; raises E121 for others."""
        axis = self.integer(name, default)
        if not -rank <= axis < rank:
            raise self.refused(f"{name} {axis} does not fit rank {rank}")
        return axis % rank

    def dims(self, x: ir.Value) -> tuple[Dim, ...]:
        """Return the dims of ``x``."""
        self.rank(x)
        assert x.shape is not None
        return tuple(x.shape.dims)

    def sizes(self, x: ir.Value, axes: Sequence[int] | None = None) -> list[int] | None:
        """Return the sizes of ``x``, or those of ``axes``; None if one of them is open."""
        dims = self.dims(x)
        chosen = dims if axes is None else [dims[axis] for axis in axes]
        return None if any(not isinstance(d, int) for d in chosen) else [int(d) for d in chosen]  # type: ignore[arg-type]

    def result_type(self, index: int = 0) -> ir.DataType:
        """Return the declared element type of a result."""
        kind = self.operation.outputs[index].type
        if not isinstance(kind, TensorType):
            raise self.refused("its result is not a tensor")
        return onnx_type(kind.element)

    def refused(self, why: str, fix: str = "") -> Unsupported:
        """Return error E121: the operator has a reader, but not for this use of it."""
        return Unsupported(
            "E121",
            f"operator {self.operation.type!r} of Core ML is not read in this use",
            at=self.place(),
            why=why,
            fix=fix or "convert the source model without it, or cut the model before it",
        )

    def place(self) -> str:
        """Return text that names the operation in errors, by its first result."""
        names = [each.name for each in self.operation.outputs]
        return f"value {names[0]!r}" if names else "an operation without results"
