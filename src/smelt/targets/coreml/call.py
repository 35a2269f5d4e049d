"""One ONNX node on its way into a MIL program: operands, attributes, constants, results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import Constants
from smelt.ir.opset import default_attribute
from smelt.ir.value_facts.integer_bounds import IntegerBounds
from smelt.mlpackage.program import Element
from smelt.targets.coreml.writer import Dims, Operand, Refused, Val, Writer, broadcast

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

LARGEST_HALF = 65504.0
MANY = 4096
"""A larger constant is not converted to find out whether a node can be written."""


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
    """What all calls of one emission share: the writer, constants, precision, opset."""

    writer: Writer
    half: bool
    keep: frozenset[str]
    opset: int
    scope: Scope = field(default_factory=Scope)
    constants: Constants = field(default_factory=Constants)
    bounds: IntegerBounds = field(default_factory=IntegerBounds)
    lower_bounds: dict[str, int] = field(default_factory=dict)
    overflows: dict[str, str] = field(default_factory=dict)
    dry: bool = False

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


class Call:
    """A node and the means to write it. ``w`` writes operations with named results."""

    def __init__(self, facts: Facts, node: ir.Node) -> None:
        self.facts, self.node, self.w = facts, node, facts.writer
        kept = node.op_type in facts.keep or (node.name or "") in facts.keep
        self.half = facts.half and not kept
        self._label = next((v.name for v in node.outputs if v.name), node.op_type) or ""

    # ---- operands

    def input(self, index: int) -> ir.Value | None:
        """Return ONNX input ``index``; None if it is absent."""
        return self.node.inputs[index] if index < len(self.node.inputs) else None

    def has(self, index: int) -> bool:
        """True if input ``index`` is present."""
        return self.input(index) is not None

    def element(self, value: ir.Value | None) -> Element:
        """Return the element type in which this node computes ``value``."""
        return self.facts.element_of(None if value is None else value.dtype, half=self.half)

    def x(self, index: int = 0, element: Element | None = None) -> Val:
        """Return input ``index`` as a value of the program, cast to ``element`` if given."""
        value = self.input(index)
        if value is None:
            raise Refused(f"input {index} is absent")
        return self.read(value, element or self.element(value))

    def read(self, value: ir.Value, element: Element) -> Val:
        """Return an ONNX value with elements of type ``element``; casts are written once."""
        scope = self.facts.scope
        found = scope.find(value, element)
        if found is not None:
            return found
        original = scope.original(value)
        if original is None:
            array = self.facts.constants.get(value, limit=None)
            if array is None and self.facts.dry:
                return Val(value.name or "value", element, self.dims(value))
            if array is None:
                raise Refused(f"its input {value.name!r} could not be written")
            found = self.constant(array, element, value.name or "const")
            top = scope
            while top.outer is not None:
                top = top.outer
            top.values[value, element] = found
            return found
        found = self.cast(original, element)
        scope.add(value, found)
        return found

    def constant(self, array: np.ndarray, element: Element, name: str = "const") -> Val:
        """Return a constant with elements of type ``element``.

        Raises Refused for integers beyond 32 bits, and for finite numbers beyond float16.
        """
        if 0 in array.shape:
            raise Refused(
                f"the constant {name!r} has a dimension of 0, which Core ML does not have"
            )
        if self.facts.dry and array.size > MANY:
            return Val(name, element, array.shape, array)
        if element == Element.INT32:
            limits = np.iinfo(np.int32)
            is_wide = array.dtype.kind in "iu" and array.dtype.itemsize >= 4
            if is_wide and (array.min() < limits.min or array.max() > limits.max):
                raise Refused(
                    f"the constant {name!r} has integers beyond 32 bits",
                    "use smaller integers; Core ML has none of 64 bits",
                    "E402",
                )
            return self.w.constant(_converted(array, np.int32), name)
        if element == Element.FLOAT16 and array.dtype != np.float16:
            wide = np.asarray(array, np.float32)
            with np.errstate(over="ignore"):
                narrow = wide.astype(np.float16)
            if bool((np.isinf(narrow) & np.isfinite(wide)).any()):
                largest = float(np.abs(wide[np.isfinite(wide)]).max())
                keep = self.node.name or self.node.op_type
                raise Refused(
                    f"the constant {name!r} has {largest:.4g}, beyond float16's {LARGEST_HALF:.0f}",
                    f"keep its reader in float32, --option keep={keep}, or use precision=fp32",
                    "E406",
                )
            return self.w.constant(narrow, name)
        return self.w.constant(_converted(array, element.numpy), name)

    def cast(self, value: Val, element: Element) -> Val:
        """Return ``value`` cast to ``element``; numbers become True where they are not 0."""
        if value.element == element:
            return value
        if element == Element.BOOL:
            zero = 0.0 if value.is_float else 0
            return self.op("not_equal", value, zero, element=Element.BOOL)
        words = {
            Element.FLOAT16: "fp16",
            Element.FLOAT32: "fp32",
            Element.INT32: "int32",
            Element.INT8: "int8",
            Element.UINT8: "uint8",
        }
        label = f"{value.name}_{words[element]}"
        return self.w.op("cast", element, value.dims, name=label, x=value, dtype=words[element])

    # ---- facts about operands

    def dims(self, value: ir.Value | None) -> Dims:
        """Return the dims of an ONNX value, None for an unknown size; raises Refused without."""
        if value is None or value.shape is None:
            raise Refused("the rank of a value is not known", "give the model shapes")
        return tuple(dim if isinstance(dim, int) else None for dim in value.shape.dims)

    def out_dims(self, index: int = 0) -> Dims:
        """Return the dims of result ``index``."""
        return self.dims(self.node.outputs[index])

    def out_element(self, index: int = 0) -> Element:
        """Return the element type of result ``index``."""
        return self.element(self.node.outputs[index])

    def array(self, index: int) -> np.ndarray | None:
        """Return input ``index`` as an array, if it is constant."""
        return self.facts.constants.get(self.input(index), limit=None)

    def ints(self, index: int) -> list[int] | None:
        """Return constant input ``index`` as a flat list of integers; None if it is absent or
        computed."""
        array = self.array(index)
        return None if array is None else [int(each) for each in array.reshape(-1)]

    def fixed_ints(self, index: int, what: str) -> list[int] | None:
        """Return input ``index`` as integers, None if absent; raises Refused if it is computed."""
        if not self.has(index):
            return None
        found = self.ints(index)
        if found is None:
            raise Refused(f"its {what} are computed; Core ML needs constants")
        return found

    def attribute(self, name: str) -> Any:
        """Return an attribute, or ONNX's default for it; None if it has none."""
        found = self.node.attributes.get(name)
        if found is not None:
            return found.value
        return default_attribute(self.node.op_type, name, self.facts.opset)

    def lowest(self, index: int) -> int | None:
        """Return a lower bound of the elements of integer input ``index``, if one is known."""
        value = self.input(index)
        bounds = None if value is None else self.facts.bounds.of(value)
        return None if bounds is None else int(bounds[0])

    def dtype(self, index: int = 0) -> ir.DataType | None:
        """Return the ONNX type of input ``index``."""
        value = self.input(index)
        return None if value is None else value.dtype

    def refuse_narrow(self, what: str) -> None:
        """Raise Refused for 8 and 16 bit integers, whose arithmetic wraps around."""
        if self.dtype() in NARROW:
            raise Refused(
                f"{what} of 8 and 16 bit integers wraps around; Core ML computes in 32 bits",
                "cast to int32",
            )

    # ---- writing

    def op(self, op_type: str, *operands: Operand, element: Element | None = None) -> Val:
        """Write an elementwise operation of one or two operands, with broadcasting."""
        values = [each for each in operands if isinstance(each, Val)]
        kind = values[0].element
        given = [
            self.w.value(each, kind if kind != Element.BOOL else Element.FLOAT32)
            for each in operands
        ]
        dims = broadcast(*(each.dims for each in given))
        names = dict(zip(("x", "y"), given, strict=False))
        return self.w.op(op_type, element or kind, dims, name=f"{self._label}_{op_type}", **names)

    def select(self, condition: Val, if_true: Operand, if_false: Operand, element: Element) -> Val:
        """Write a choice between two values."""
        a, b = self.w.value(if_true, element), self.w.value(if_false, element)
        dims = broadcast(condition.dims, a.dims, b.dims)
        label = f"{self._label}_select"
        return self.w.op("select", element, dims, name=label, cond=condition, a=a, b=b)

    def write(
        self, op_type: str, element: Element | None = None, dims: Dims | None = None, **inputs: Any
    ) -> Val:
        """Write an operation whose result has the name and, by default, the type of result 0."""
        kind = self.out_element() if element is None else element
        shape = self.out_dims() if dims is None else dims
        return self.w.op(op_type, kind, shape, name=self._label, **inputs)

    def done(self, *results: Val | None) -> None:
        """Declare the results of the node."""
        for output, result in zip(self.node.outputs, results, strict=False):
            if result is not None:
                self.facts.scope.add(output, result)

    # ---- sizes at run time

    def shape(self, value: Val) -> Val:
        """Return the sizes of ``value`` as an int32 vector."""
        if None not in value.dims:
            return self.w.constant(np.asarray(value.dims, np.int32))
        return self.w.op("shape", Element.INT32, (value.rank,), name=f"{value.name}_shape", x=value)

    def size(self, value: Val, axis: int) -> Val:
        """Return one size of ``value`` as an int32 scalar."""
        size = value.dims[axis]
        if size is not None:
            return self.w.constant(np.int32(size))
        axis %= value.rank
        return self.w.op(
            "slice_by_index",
            Element.INT32,
            (),
            name=f"{value.name}_size",
            x=self.shape(value),
            begin=[axis],
            end=[axis + 1],
            stride=[1],
            begin_mask=[False],
            end_mask=[False],
            squeeze_mask=[True],
        )

    def vector(self, parts: Sequence[int | Val]) -> Val:
        """Return numbers and int32 scalars as one int32 vector."""
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
        """Return ``value`` with other dims of as many elements."""
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
        """Return a reduction over ``axes``."""
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


def _converted(array: np.ndarray, dtype: Any) -> np.ndarray:
    """Return ``array`` with another element type; the same array if it has it already."""
    return array if array.dtype == dtype else array.astype(dtype)
