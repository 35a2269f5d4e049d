"""``Call``: what a row uses to write one ONNX node as operations of MIL, Core ML's language."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from smelt.mlpackage.program import Element
from smelt.targets.coreml.operands import Operands
from smelt.targets.coreml.writer import Dims, Operand, Refused, Val, broadcast


class Call(Operands):
    """An ONNX node, and methods that write operations for it, named after the node's result."""

    def op(self, op_type: str, *operands: Operand, element: Element | None = None) -> Val:
        """Write an elementwise operation of one or two operands with broadcasting; return it.

        A Python float has the element type of the first ``Val``, and so has the result unless
        ``element`` is given.
        """
        values = [each for each in operands if isinstance(each, Val)]
        kind = values[0].element
        sides = [
            self.w.value(each, kind if kind != Element.BOOL else Element.FLOAT32)
            for each in operands
        ]
        dims = broadcast(*(each.dims for each in sides))
        names = dict(zip(("x", "y"), sides, strict=False))
        return self.w.op(op_type, element or kind, dims, name=f"{self._label}_{op_type}", **names)

    def select(self, condition: Val, if_true: Operand, if_false: Operand, element: Element) -> Val:
        """Write ``select`` with broadcasting and return its result, of type ``element``.

        Core ML's tools infer the dims of the result from the two values, not from the condition,
        though Core ML documents that it broadcasts. So one value is repeated to the dims if needed.
        """
        a, b = self.w.value(if_true, element), self.w.value(if_false, element)
        dims = broadcast(condition.dims, a.dims, b.dims)
        if broadcast(a.dims, b.dims) != dims:
            if b.array is not None and b.array.size == 1 and (a.array is None or a.array.size > 1):
                b = self.repeated(b, (condition, a), dims)
            else:
                a = self.repeated(a, (condition, b), dims)
        label = f"{self._label}_select"
        return self.w.op("select", element, dims, name=label, cond=condition, a=a, b=b)

    def repeated(self, value: Val, others: Sequence[Val], dims: Dims) -> Val:
        """Return ``value`` broadcast to ``dims``; open sizes are read in each run from ``value``
        and ``others``.
        """
        if value.array is not None and value.array.size == 1:
            shape = self.broadcast_shape(others, dims)
            filler = value.array.reshape(())
            return self.w.op("fill", value.element, dims, shape=shape, value=filler)
        if None in (*dims, *value.dims):
            shape = self.broadcast_shape((value, *others), dims)
            is_bool = value.element == Element.BOOL
            # x + -0.0 is x for each x, also for -0
            neutral = False if is_bool else -0.0 if value.is_float else 0
            filled = self.w.op("fill", value.element, dims, shape=shape, value=neutral)
            return self.op("logical_or" if is_bool else "add", value, filled)
        whole = (
            self.expand(value, range(len(dims) - value.rank)) if value.rank < len(dims) else value
        )
        counts = [
            1 if now == then else then or 1 for now, then in zip(whole.dims, dims, strict=True)
        ]
        return self.w.op("tile", value.element, dims, x=whole, reps=counts)

    def broadcast_shape(self, values: Sequence[Val], dims: Dims) -> Val:
        """Return the shape ``dims`` that ``values`` broadcast to, as an int32 vector."""
        same = next((each for each in values if each.dims == dims), None)
        if same is not None:
            return self.shape(same)
        parts: list[int | Val] = []
        for axis, size in zip(range(-len(dims), 0), dims, strict=True):
            if size is not None:
                parts.append(size)
                continue
            sizes = [
                self.size(each, axis)
                for each in values
                if -axis <= each.rank and each.dims[axis] is None
            ]
            parts.append(reduce(lambda x, y: self.op("maximum", x, y), sizes))
        return self.vector(parts)

    def write(
        self, op_type: str, element: Element | None = None, dims: Dims | None = None, **inputs: Any
    ) -> Val:
        """Write an operation whose result has the name and, by default, the type of result 0."""
        kind = self.out_element() if element is None else element
        shape = self.out_dims() if dims is None else dims
        return self.w.op(op_type, kind, shape, name=self._label, **inputs)

    def is_weight(self, index: int) -> bool:
        """True if input ``index`` is a constant, or a packed weight that Core ML unpacks on
        loading.
        """
        value = self.input(index)
        if self.array(index) is not None:
            return True
        if self.facts.dry:
            node = None if value is None else value.producer()
            return node is not None and node.op_type == "DequantizeLinear"
        name = self.x(index).name
        return any(each.outputs[0].name == name for each in reversed(self.w.constants))

    def done(self, *results: Val | None) -> None:
        """Record ``results`` as the outputs of the node; None leaves an output out."""
        for output, result in zip(self.node.outputs, results, strict=False):
            if result is not None:
                self.facts.scope.add(output, result)

    def shape(self, value: Val) -> Val:
        """Return the shape of ``value`` as an int32 vector; each block computes it at most once."""
        if None not in value.dims:
            return self.w.constant(np.asarray(value.dims, np.int32))
        label = f"{value.name}_shape"
        return self.w.once(
            label, lambda: self.w.op("shape", Element.INT32, (value.rank,), name=label, x=value)
        )

    def size(self, value: Val, axis: int) -> Val:
        """Return one size of ``value`` as an int32 scalar."""
        size = value.dims[axis]
        if size is not None:
            return self.w.constant(np.int32(size))
        place = axis % value.rank
        label = f"{value.name}_size_{place}"
        return self.w.once(label, lambda: self.element_of(self.shape(value), place, label))

    def element_of(self, vector: Val, place: int, name: str = "element") -> Val:
        """Return one element of an int32 vector as a scalar."""
        more: dict[str, Any] = {"validate_indices": False} if self.w.ios >= 17 else {}
        return self.w.op(
            "gather",
            Element.INT32,
            (),
            name=name,
            x=vector,
            indices=place,
            axis=0,
            batch_dims=0,
            **more,
        )

    def vector(self, parts: Sequence[int | Val]) -> Val:
        """Return an int32 vector of ``parts``; it is a constant if all of them are numbers."""
        if all(isinstance(each, int) for each in parts):
            return self.w.constant(np.asarray(parts, np.int32))
        values = [
            self.w.op("expand_dims", Element.INT32, (1,), x=each, axes=[0])
            if isinstance(each, Val)
            else self.w.constant(np.asarray([each], np.int32))
            for each in parts
        ]
        if len(values) == 1:
            return values[0]
        return self.w.op(
            "concat", Element.INT32, (len(values),), values=values, axis=0, interleave=False
        )

    def reshape(self, value: Val, dims: Dims) -> Val:
        """Return ``value`` reshaped to ``dims``.

        MIL computes one size that is -1, and copies the size at the same axis for 0. Raises Refused
        if two sizes are open and cannot be copied.
        """
        if value.dims == dims and None not in dims:
            return value
        unknown = dims.count(None)
        if unknown <= 1:
            shape: Operand = [-1 if dim is None else dim for dim in dims]
        elif len(dims) == value.rank:
            shape = [0 if dim is None else dim for dim in dims]
            if any(d is None and value.dims[i] is not None for i, d in enumerate(dims)):
                raise Refused("two sizes of its result are computed")
        else:
            raise Refused("two sizes of its result are computed")
        return self.w.op(
            "reshape", value.element, dims, name=f"{self._label}_reshape", x=value, shape=shape
        )

    def expand(self, value: Val, axes: Sequence[int]) -> Val:
        """Return ``value`` with dims of size 1 at ``axes`` of the result."""
        rank = value.rank + len(axes)
        places = sorted(axis % rank for axis in axes)
        sizes = iter(value.dims)
        dims = tuple(1 if axis in places else next(sizes) for axis in range(rank))
        label = f"{self._label}_expand"
        return self.w.op("expand_dims", value.element, dims, name=label, x=value, axes=places)

    def squeeze(self, value: Val, axes: Sequence[int]) -> Val:
        """Return ``value`` without the dims ``axes``, each of size 1."""
        places = sorted(axis % value.rank for axis in axes)
        dims = tuple(size for axis, size in enumerate(value.dims) if axis not in places)
        label = f"{self._label}_squeeze"
        return self.w.op("squeeze", value.element, dims, name=label, x=value, axes=places)

    def transpose(self, value: Val, perm: Sequence[int]) -> Val:
        """Return ``value`` with its dims in another order."""
        if list(perm) == list(range(value.rank)):
            return value
        dims = tuple(value.dims[axis] for axis in perm)
        label = f"{self._label}_transpose"
        return self.w.op("transpose", value.element, dims, name=label, x=value, perm=list(perm))

    def reduce(self, op_type: str, value: Val, axes: Sequence[int], *, keep: bool = True) -> Val:
        """Return the reduction ``op_type`` of ``value`` over ``axes``; ``keep`` leaves
        dims of 1.
        """
        places = sorted(axis % value.rank for axis in axes)
        dims = tuple(
            1 if axis in places else size
            for axis, size in enumerate(value.dims)
            if keep or axis not in places
        )
        label = f"{self._label}_{op_type}"
        return self.w.op(
            op_type, value.element, dims, name=label, x=value, axes=places, keep_dims=keep
        )
