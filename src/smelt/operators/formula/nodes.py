"""Builds formulas as ONNX nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.build import Builder
from smelt.operators.elementwise import WITHIN_FORMULAS
from smelt.operators.formula.symbolic import Symbol
from smelt.operators.numeric import Arithmetic, Number


class Nodes(Arithmetic):
    """Builds formulas in the graph of ``builder``; see ``Arithmetic``.

    Equal constants are shared. Inside a loop, constants of the outer graph are visible, too.
    """

    def __init__(
        self, builder: Builder, outer: Nodes | None = None, tolerance: float = 0.0
    ) -> None:
        """Build nodes with ``builder``; ``outer`` builds the graph around the body of a loop."""
        self.builder = builder
        self.outer = outer
        self.tolerance = tolerance if outer is None else outer.tolerance
        self.depth: int = 0 if outer is None else outer.depth + 1
        self._constants: dict[tuple[str, bytes], ir.Value] = {}

    # -- values ------------------------------------------------------------------------------

    def tensor(self, value: ir.Value) -> Tensor:
        """Return ``value`` as a number of formulas."""
        return Tensor(self, value)

    def op(self, op_type: str, *inputs: Number, **attributes: Any) -> Tensor:
        """Build one node with one result; see ``ops``.

        Functions that ONNX lacks are built by their formula.
        """
        within = WITHIN_FORMULAS.get(op_type)
        if within is not None:
            assert within.formula is not None
            built: Tensor = within.formula(self, *inputs)
            return built
        return self.ops(op_type, *inputs, outputs=1, **attributes)[0]

    def ops(
        self, op_type: str, *inputs: Number, outputs: int, **attributes: Any
    ) -> tuple[Tensor, ...]:
        """Build one node, in the innermost graph of its inputs.

        Plain numbers become constants in the dtype of the other inputs.
        """
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        # A node in a loop's body may read outer values, but no outer node a value of the body.
        m = max((x.m for x in tensors), key=lambda m: m.depth, default=self)
        operands = inputs[1:] if op_type == "Where" else inputs  # the condition is a bool
        typed = [x for x in operands if isinstance(x, Tensor)]
        dtype = (typed[0].value.dtype if typed else None) or ir.DataType.DOUBLE
        values = [x.value if isinstance(x, Tensor) else m.constant(x, dtype) for x in inputs]
        results = m.builder.ops(op_type, *values, outputs=outputs, **attributes)
        return tuple(Tensor(m, value) for value in results)

    def constant(self, number: float, dtype: ir.DataType) -> ir.Value:
        """Return a rank-0 constant of this graph, or an equal one of a graph around it."""
        array = np.asarray(number, dtype=dtype.numpy())
        key = (dtype.name, array.tobytes())
        scope: Nodes | None = self
        while scope is not None:
            if key in scope._constants:
                return scope._constants[key]
            scope = scope.outer
        return self._constants.setdefault(key, self.builder.constant(array))

    # -- loops -------------------------------------------------------------------------------

    def loop(
        self,
        go_on: Callable[..., Number],
        step: Callable[..., Sequence[Number]],
        state: Sequence[Number],
    ) -> tuple[Number, ...]:
        """Build a Loop that tests before its first iteration."""
        return self._loop(None, state, lambda _, *items: step(*items), go_on)

    def repeat(
        self, count: Tensor, step: Callable[..., Sequence[Number]], state: Sequence[Number]
    ) -> tuple[Number, ...]:
        """Build ``state = step(k, *state)`` for k from 0 to ``count`` - 1; ``count`` is a rank-0
        int64."""
        return self._loop(count, state, step, go_on=None)

    def _loop(
        self,
        count: Tensor | None,
        state: Sequence[Number],
        step: Callable[..., Sequence[Number]],
        go_on: Callable[..., Number] | None,
    ) -> tuple[Number, ...]:
        """Build a Loop of ``count`` iterations, or until ``go_on`` is false, and return its final
        states."""
        first = [item.value for item in state]
        inner, inputs = self.builder.branch(
            [(ir.DataType.INT64, ()), (ir.DataType.BOOL, ()), *map(_type, first)]
        )
        m = Nodes(inner, self)
        k, always, *items = (Tensor(m, value) for value in inputs)
        stepped = step(k, *items)
        again = always if go_on is None else m.any(go_on(*stepped))
        for number in (again, *stepped):
            inner.graph.outputs.append(m._as_node_result(number).value)
        start = None if go_on is None else self.any(go_on(*state)).value
        limit = None if count is None else count.value
        outputs = len(first)
        results = self.builder.ops("Loop", limit, start, *first, outputs=outputs, body=inner.graph)
        for value, (dtype, dims) in zip(results, map(_type, first), strict=True):
            if value.shape is None and dims is not None:
                value.type, value.shape = ir.TensorType(dtype), ir.Shape(dims)
        return tuple(Tensor(self, value) for value in results)

    def _as_node_result(self, number: Tensor) -> Tensor:
        """Return the result of a node in this graph, as an output of a graph must be."""
        return Tensor(self, self.builder.op("Identity", number.value))

    def any(self, mask: Tensor) -> Tensor:
        """True if an element of ``mask`` is true.

        ONNX Runtime reduces an empty tensor to an empty one, so a zero is appended before the sum.
        """
        vector = [
            self.tensor(self.builder.constant(np.asarray([number], np.int64))) for number in (-1, 0)
        ]
        numbers = self.op("Cast", mask, to=int(ir.DataType.INT64))
        flat = self.op("Concat", self.op("Reshape", numbers, vector[0]), vector[1], axis=0)
        return self.op("Greater", self.op("ReduceSum", flat, keepdims=0), 0)


def _type(value: ir.Value) -> tuple[ir.DataType, tuple[None, ...] | None]:
    """Return the dtype and the rank of ``value``, with all sizes open."""
    assert value.dtype is not None
    dims = None if value.shape is None else (None,) * len(value.shape)
    return value.dtype, dims


class Tensor(Symbol["Tensor"]):
    """A value of the graph, with Python's operators."""

    __slots__ = ("m", "value")

    m: Nodes

    def __init__(self, m: Nodes, value: ir.Value) -> None:
        self.m = m
        self.value = value
