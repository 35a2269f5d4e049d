"""Builds the body of a MIL function: operations, constants, names and types of inner values."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from smelt.ir import reserved_words
from smelt.mlpackage.program import Block, Constant, Element, Named, Operation, TensorType, renamed
from smelt.targets.coreml.domains import DATA, FLOATS, domain_of

Dims: TypeAlias = tuple[int | None, ...]

IN_FILE = 10
"""Constants of at least so many elements are stored in the weight file, as Core ML's tools do."""

OF_NUMPY = {
    np.dtype(np.bool_): Element.BOOL,
    np.dtype(np.float16): Element.FLOAT16,
    np.dtype(np.float32): Element.FLOAT32,
    np.dtype(np.int32): Element.INT32,
    np.dtype(np.int8): Element.INT8,
    np.dtype(np.uint8): Element.UINT8,
    np.dtype(np.uint32): Element.UINT32,
}
FILE_ELEMENTS = frozenset({Element.FLOAT16, Element.FLOAT32, Element.UINT8, Element.INT8})
"""Element types that the weight file holds on every iOS."""


class Refused(Exception):
    """Raised by a row that cannot write a node: ``why``, ``fix`` and ``code`` are for the error.

    An empty ``fix`` tells the user to choose another target.
    """

    def __init__(self, why: str, fix: str = "", code: str = "E201") -> None:
        super().__init__(why)
        self.why, self.fix, self.code = why, fix, code


@dataclass(frozen=True, eq=False)
class Val:
    """A value of the program: its name, element type and dims. A constant has its array."""

    name: str
    element: Element
    dims: Dims
    array: np.ndarray | None = None

    @property
    def rank(self) -> int:
        """The number of dims."""
        return len(self.dims)

    @property
    def is_float(self) -> bool:
        """True for float16 and float32."""
        return self.element in FLOATS


Operand: TypeAlias = "Val | np.ndarray | np.generic | float | int | bool | str | Sequence[Any]"


@dataclass
class Writer:
    """Writes one function. ``ios`` is the lowest version that must read it.

    Constants come first in the body, so that inner blocks see all of them.
    """

    ios: int
    names: set[str] = field(default_factory=lambda: set(reserved_words.CORE_ML))
    constants: list[Operation] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)
    _known: dict[Any, Val] = field(default_factory=dict)
    _counts: dict[str, int] = field(default_factory=dict)
    _blocks: list[list[Operation]] = field(default_factory=list)

    def new_name(self, wanted: str) -> str:
        """Return a name that Core ML permits and that no value has, similar to ``wanted``."""
        base = re.sub(r"[^A-Za-z0-9_]", "_", wanted) or "value"
        base = base if base[0].isalpha() or base[0] == "_" else f"_{base}"
        name = base
        while name in self.names:
            self._counts[base] = self._counts.get(base, 0) + 1
            name = f"{base}_{self._counts[base]}"
        self.names.add(name)
        return name

    def op(
        self,
        op_type: str,
        element: Element,
        dims: Dims,
        *,
        name: str = "",
        **inputs: Any,
    ) -> Val:
        """Write an operation with one result, and return the result.

        A Python float is a constant of the result's element type (float32 if that is no float), an
        int or a list of ints an int32 constant. An input that is None is left out.
        """
        return self.ops(op_type, [(element, dims)], name=name, **inputs)[0]

    def ops(
        self,
        op_type: str,
        results: Sequence[tuple[Element, Dims]],
        *,
        name: str = "",
        blocks: Sequence[Block] = (),
        **inputs: Any,
    ) -> list[Val]:
        """Write an operation with several results; see ``op``."""
        floats = results[0][0] if results and results[0][0] in FLOATS else Element.FLOAT32
        arguments: dict[str, list[str]] = {}
        for parameter, operand in inputs.items():
            if operand is None:
                continue
            values = self._operands(operand, floats)
            if parameter in DATA:
                self._check_domain(op_type, values)
            arguments[parameter] = [value.name for value in values]
        outputs = []
        for number, (element, dims) in enumerate(results):
            if any(dim == 0 for dim in dims):
                raise Refused("a dimension is 0, which Core ML does not have")
            label = name or op_type
            unique = self.new_name(label if number == 0 else f"{label}_{number}")
            outputs.append(Val(unique, element, dims))
        named = [Named(value.name, TensorType(value.element, value.dims)) for value in outputs]
        label = outputs[0].name if outputs else self.new_name(op_type)
        attributes = {"name": _text(label)}
        self.operations.append(Operation(op_type, arguments, named, list(blocks), attributes))
        return outputs

    def _operands(self, operand: Operand, floats: Element) -> list[Val]:
        """Return the values of one parameter: those of a list, or one."""
        if isinstance(operand, list | tuple) and operand and isinstance(operand[0], Val):
            return list(operand)
        return [self.value(operand, floats)]

    def value(self, operand: Operand, floats: Element = Element.FLOAT32) -> Val:
        """Return ``operand`` as a value; a number becomes a constant, a float of type
        ``floats``.
        """
        if isinstance(operand, Val):
            return operand
        if isinstance(operand, str):
            return self.text(operand)
        if isinstance(operand, bool):
            return self.constant(np.bool_(operand))
        if isinstance(operand, float):
            return self.constant(_number(operand, floats))
        if isinstance(operand, int):
            return self.constant(np.int32(operand))
        if isinstance(operand, list | tuple):
            kind = np.bool_ if operand and isinstance(operand[0], bool) else np.int32
            return self.constant(np.asarray(operand, kind))
        return self.constant(np.asarray(operand))

    def text(self, text: str) -> Val:
        """Return a constant text."""
        if text not in self._known:
            self._known[text] = self._add(Constant(TensorType(Element.STRING), text), text, None)
        return self._known[text]

    def constant(self, array: Any, name: str = "", element: Element | None = None) -> Val:
        """Return a constant; equal small constants and the same large array are written once."""
        array = np.asarray(array)
        kind = element or OF_NUMPY[array.dtype]
        if array.size < 4096:
            key: Any = (kind, array.shape, array.tobytes())
        else:
            key = (kind, id(array))
        if key not in self._known:
            in_file = array.size >= IN_FILE and kind in FILE_ELEMENTS
            constant = Constant(TensorType(kind, array.shape), array, in_file)
            self._known[key] = self._add(constant, name or "const", array)
        return self._known[key]

    def _add(self, constant: Constant, label: str, array: np.ndarray | None) -> Val:
        """Write a const operation, and return its value."""
        kind = constant.type
        assert isinstance(kind, TensorType)
        name = self.new_name(label)
        attributes = {"name": _text(name), "val": constant}
        self.constants.append(Operation("const", {}, [Named(name, kind)], attributes=attributes))
        return Val(name, kind.element, tuple(kind.dims or ()), array)

    def constexpr(
        self,
        op_type: str,
        element: Element,
        dims: Dims,
        name: str,
        **arrays: np.ndarray | str | Constant,
    ) -> Val:
        """Write an operation that Core ML evaluates on loading, to unpack a weight; return the
        weight.

        Its arrays are attributes before iOS 18 and inputs from then on, never operations.
        """
        unique = self.new_name(name)
        values = {each: as_constant(array) for each, array in arrays.items()}
        named = [Named(unique, TensorType(element, dims))]
        if op_type in ("constexpr_affine_dequantize",) or self.ios < 18:
            attributes = {"name": _text(unique), **values}
            operation = Operation(op_type, {}, named, attributes=attributes)
        else:
            inputs = {each: [value] for each, value in values.items()}
            operation = Operation(op_type, inputs, named, attributes={"name": _text(unique)})
        self.constants.append(operation)
        return Val(unique, element, dims)

    def _check_domain(self, op_type: str, values: Sequence[Val]) -> None:
        """Raise Refused for an operand of an element type that the operator does not take."""
        for value in values:
            if value.element not in domain_of(op_type, self.ios):
                kind = value.element.name.lower()
                raise Refused(f"{op_type} of Core ML does not take {kind} on iOS {self.ios}")

    def once(self, label: str, write: Callable[[], Val]) -> Val:
        """Return the value ``label`` of this block; ``write`` makes it at the first call."""
        key = id(self.operations), label
        if key not in self._known:
            self._known[key] = write()
        return self._known[key]

    def rename(self, names: Mapping[str, str]) -> None:
        """Give some values of the body other names."""
        self.operations = [renamed(each, names) for each in self.operations]

    @contextmanager
    def block(self) -> Iterator[list[Operation]]:
        """Yield the list of an inner block, to which all operations in this context are written."""
        outer, self.operations = self.operations, []
        self._blocks.append(self.operations)  # ``once`` needs an id that no later list can reuse
        try:
            yield self.operations
        finally:
            self.operations = outer


def as_constant(value: np.ndarray | str | Constant) -> Constant:
    """Return an array or a text as a constant; a large array is stored in the weight file."""
    if isinstance(value, Constant):
        return value
    if isinstance(value, str):
        return _text(value)
    kind = OF_NUMPY[value.dtype]
    in_file = value.size >= IN_FILE and kind in FILE_ELEMENTS
    return Constant(TensorType(kind, value.shape), value, in_file)


def _number(number: float, floats: Element) -> np.ndarray:
    """Return ``number`` in the type ``floats``; raises Refused E406 if it becomes
    infinite there.
    """
    with np.errstate(over="ignore"):
        array = np.asarray(number, floats.numpy)
    if math.isfinite(number) and np.isinf(array):
        raise Refused(
            f"it has the number {number:.4g}, beyond float16's 65504",
            "keep it in float32, --option keep=NODE, or use precision=fp32",
            "E406",
        )
    return array


def _text(text: str) -> Constant:
    """Return a text as a constant that is stored in the program."""
    return Constant(TensorType(Element.STRING), text)


def broadcast(*shapes: Dims) -> Dims:
    """Return the broadcast dims of ``shapes``, aligned at the last axis.

    An open size (None) stays open unless another shape has a known size there that is not 1.
    """
    rank = max(map(len, shapes), default=0)
    result: list[int | None] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if -axis <= len(shape)} - {1}
        known = [size for size in sizes if size is not None]
        result.append(known[0] if known else None if sizes else 1)
    return tuple(result)
