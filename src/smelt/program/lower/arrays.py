"""Arrays with Python operators: lowerings write an operator as a formula of whole arrays.

Each step of a formula emits one instruction that every target has, so that every target computes
the operator. Sizes and types of the steps are inferred::

    m = Steps(cx)
    x = m.array(node.inputs[0])
    m.set_output(node.outputs[0], m.op("Sqrt", x * x + 1))
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.operators.elementwise import ROWS
from smelt.operators.formula import Symbol
from smelt.operators.numeric import Number
from smelt.program.instruction import DYNAMIC_RANGE, AttributeValue, Dim
from smelt.program.lower.builder import ProgramBuilder
from smelt.program.lower.contraction import Labelled, dot_to
from smelt.program.lower.elementwise import broadcast


class Array(Symbol["Array"]):
    """The tensor in a slot; its Python operators emit instructions, and broadcast."""

    __slots__ = ("m", "slot")

    m: Steps

    def __init__(self, m: Steps, slot: int) -> None:
        self.m = m
        self.slot = slot

    @property
    def shape(self) -> tuple[Dim, ...]:
        """The dims of the tensor."""
        return self.m.cx.shape(self.slot)

    @property
    def dtype(self) -> ir.DataType:
        """The element type of the tensor."""
        return self.m.cx.dtype(self.slot)

    def reshape(self, *shape: Dim) -> Array:
        """Return the same elements in another shape."""
        return self.m.emit("Reshape", (self,), shape) if shape != self.shape else self

    def transpose(self, *perm: int) -> Array:
        """Return the transpose: dim i of the result is dim ``perm[i]``."""
        if perm == tuple(range(len(perm))):
            return self
        return self.m.emit("Transpose", (self,), [self.shape[i] for i in perm], perm=perm)

    def expand(self, *shape: Dim) -> Array:
        """Return the array broadcast to ``shape``."""
        return self.m.emit("Expand", (self,), shape) if shape != self.shape else self

    def cast(self, dtype: ir.DataType) -> Array:
        """Return the array in another element type."""
        if dtype == self.dtype:
            return self
        return self.m.emit("Cast", (self,), self.shape, dtype=dtype, saturate=1)

    def rows(self, start: int, stop: int, axis: int, step: int = 1) -> Array:
        """Return ``[start:stop:step]`` along ``axis``; the bounds are non-negative and in range."""
        shape = list(self.shape)
        shape[axis] = len(range(start, stop, step))
        starts, ends = (start,), (stop,)
        return self.m.emit(
            "Slice", (self,), shape, starts=starts, ends=ends, axes=(axis,), steps=(step,)
        )

    def gather(self, indices: Array, axis: int = 0) -> Array:
        """Return the slices along ``axis`` at ``indices``."""
        shape = (*self.shape[:axis], *indices.shape, *self.shape[axis + 1 :])
        return self.m.emit("Gather", (self, indices), shape, axis=axis)

    def reduce(self, op: str, *axes: int, keep: bool = False) -> Array:
        """Return the reduction ``op`` over ``axes``, which are non-negative."""
        dims = enumerate(self.shape)
        shape = [1 if i in axes else dim for i, dim in dims if keep or i not in axes]
        return self.m.emit(op, (self,), shape, axes=axes, keepdims=int(keep))


class Steps:
    """Emits formulas as instructions of the Program of ``cx``."""

    def __init__(self, cx: ProgramBuilder) -> None:
        self.cx = cx

    def array(self, value: ir.Value | int | None) -> Array:
        """Return a graph value, which must be present, or a slot as an Array."""
        return Array(self, value if isinstance(value, int) else self.cx.slot(value))

    def sizes(self, array: Array, first: int = 0) -> tuple[int, ...]:
        """Return the sizes of an array from dim ``first`` on as numbers; refuses symbols."""
        dims = array.shape[first:]
        sizes = tuple(dim for dim in dims if isinstance(dim, int))
        if len(sizes) < len(dims):
            raise self.cx.refuse_size(f"the sizes {list(map(str, dims))} are not all known")
        return sizes

    def size(self, array: Array, axis: int) -> int:
        """Return one size of an array as a number; refuses a symbol."""
        size = array.shape[axis]
        if not isinstance(size, int):
            raise self.cx.refuse_size(f"the size {size} of axis {axis} is not known")
        return size

    def constant(self, array: object, dtype: ir.DataType = ir.DataType.INT64) -> Array:
        """Return a constant array."""
        return Array(self, self.cx.constant(np.asarray(array).astype(dtype.numpy()), "constant"))

    def numbers(self, size: Dim, dtype: ir.DataType = ir.DataType.INT64) -> Array:
        """Return the integers from 0 to ``size - 1``."""
        if isinstance(size, int):
            return self.constant(np.arange(size), dtype)
        return self.emit("Range", (self.constant(0, dtype), self.constant(1, dtype)), (size,))

    def numbers_below(self, limit: Array, size: Dim, value: ir.Value) -> Array:
        """Return the integers from 0 to ``limit - 1``, for a scalar that depends on data.

        Their number gets the name ``size``, a dim of ``value``. If that dim is declared or bounded,
        a run with another limit aborts.
        """
        start, delta = self.constant(0, limit.dtype), self.constant(1, limit.dtype)
        numbers = self.cx.new(limit.dtype, (size,), value.name or "")
        self.cx.emit(DYNAMIC_RANGE, (start.slot, delta.slot, limit.slot), (numbers,))
        return Array(self, numbers)

    def emit(
        self,
        op: str,
        inputs: Sequence[Array],
        shape: Sequence[Dim],
        dtype: ir.DataType | None = None,
        **attributes: AttributeValue,
    ) -> Array:
        """Return the result of a new instruction; by default it has the type of the first input."""
        slots = [array.slot for array in inputs]
        return Array(self, self.cx.emit_new(op, slots, shape, dtype=dtype, **attributes))

    def op(self, op_type: str, *inputs: Number, **attributes: AttributeValue) -> Array:
        """Return the result of an elementwise operator on arrays and numbers, which broadcast.

        A plain number gets the type of the arrays; the condition of a Where does not count.
        """
        typed = [x for x in inputs[op_type == "Where" :] if isinstance(x, Array)]
        dtype = typed[0].dtype
        arrays = [x if isinstance(x, Array) else self.constant(x, dtype) for x in inputs]
        shape: tuple[Dim, ...] = ()
        for array in arrays:
            shape = broadcast(self.cx, shape, array.shape)
        result = ir.DataType.BOOL if ROWS[op_type].is_test else dtype
        return self.emit(op_type, arrays, shape, dtype=result, **attributes)

    def concat(self, arrays: Sequence[Array], axis: int) -> Array:
        """Return the concatenation of ``arrays`` along ``axis``."""
        shape = list(arrays[0].shape)
        shape[axis] = sum(self.size(array, axis) for array in arrays)
        return self.emit("Concat", arrays, shape, axis=axis)

    def dot(self, equation: str, a: Array, b: Array) -> Array:
        """Return an einsum of two operands with one letter per dim, such as ``"nf,tf->nt"``."""
        operands, _, out = equation.partition("->")
        first, second = operands.split(",")
        size = dict(zip(first + second, (*a.shape, *b.shape), strict=True))
        result = self.cx.new(a.dtype, [size[letter] for letter in out], "dot")
        labelled = (Labelled(a.slot, tuple(first)), Labelled(b.slot, tuple(second)))
        dot_to(self.cx, *labelled, tuple(out), result)
        return Array(self, result)

    def set_output(self, value: ir.Value, result: Array) -> None:
        """Make ``result`` the value of ``value``, an output of the node."""
        self.cx.alias(value, result.slot)
