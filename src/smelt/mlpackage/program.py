"""Dataclasses of a program in MIL, Core ML's language, and of its package.

``read.py`` makes them from files, ``write.py`` makes files from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np

from smelt.mlpackage.interface import Interface


class Element(IntEnum):
    """An element type of MIL; the values are the numbers of the format."""

    BOOL = 1
    STRING = 2
    FLOAT16 = 10
    FLOAT32 = 11
    FLOAT64 = 12
    BFLOAT16 = 13
    INT8 = 21
    INT16 = 22
    INT32 = 23
    INT64 = 24
    INT4 = 25
    UINT8 = 31
    UINT16 = 32
    UINT32 = 33
    UINT64 = 34
    UINT4 = 35
    UINT2 = 36
    UINT1 = 37
    UINT6 = 38
    UINT3 = 39
    FLOAT8E4M3FN = 40
    FLOAT8E5M2 = 41

    @property
    def bits(self) -> int:
        """The number of bits of one element; 0 for strings."""
        return _BITS[self]

    @property
    def numpy(self) -> np.dtype[Any]:
        """The NumPy type of an array of such elements.

        Integers of fewer than 8 bits are held as int8 or uint8, one in each byte. Types that NumPy
        lacks (bfloat16, float8) are held as their bits, uint16 or uint8.
        """
        kind: np.dtype[Any] = np.dtype(_NUMPY.get(self, _SUB_BYTE_NUMPY.get(self, np.uint8)))
        return kind


_NUMPY: dict[Element, Any] = {
    Element.BOOL: np.bool_,
    Element.STRING: np.str_,
    Element.FLOAT16: np.float16,
    Element.FLOAT32: np.float32,
    Element.FLOAT64: np.float64,
    Element.BFLOAT16: np.uint16,
    Element.INT8: np.int8,
    Element.INT16: np.int16,
    Element.INT32: np.int32,
    Element.INT64: np.int64,
    Element.UINT16: np.uint16,
    Element.UINT32: np.uint32,
    Element.UINT64: np.uint64,
}
_SUB_BYTE_NUMPY: dict[Element, Any] = {Element.INT4: np.int8}
_SUB_BYTE = {
    Element.INT4: 4,
    Element.UINT4: 4,
    Element.UINT2: 2,
    Element.UINT1: 1,
    Element.UINT6: 6,
    Element.UINT3: 3,
}
_BITS = {
    each: 0
    if each == Element.STRING
    else _SUB_BYTE.get(each, 8 * np.dtype(_NUMPY.get(each, np.uint8)).itemsize)
    for each in Element
}


@dataclass(frozen=True)
class TensorType:
    """The type of a tensor.

    A dim is None if its size is unknown; ``dims`` is None for an unknown rank, ``()`` for a scalar.
    """

    element: Element
    dims: tuple[int | None, ...] | None = ()


@dataclass(frozen=True)
class ListType:
    """A list of ``length`` values of one type; the length is None if it is unknown."""

    element: ValueType
    length: int | None = None


@dataclass(frozen=True)
class TupleType:
    """A tuple of values."""

    elements: tuple[ValueType, ...]


@dataclass(frozen=True)
class DictionaryType:
    """A dictionary from keys to values."""

    key: ValueType
    value: ValueType


@dataclass(frozen=True)
class StateType:
    """A state, a tensor that keeps its value between runs (iOS 18)."""

    wrapped: ValueType


ValueType = TensorType | ListType | TupleType | DictionaryType | StateType


@dataclass(eq=False)
class Constant:
    """A constant of the program.

    ``value`` depends on ``type``: for a tensor, a NumPy array of the dtype ``type.element.numpy``
    (for strings an array of str, or a str for a scalar); for a list or tuple, a list of Constants;
    for a dictionary, a list of pairs of Constants. ``in_file`` is True if the bytes are in the
    weight file, not in the program.
    """

    type: ValueType
    value: Any
    in_file: bool = False


@dataclass(frozen=True)
class Named:
    """A name with its type: an input, or an output of an operation."""

    name: str
    type: ValueType


Argument = str | Constant
"""An argument of an operation: the name of a value, or a constant."""


@dataclass
class Operation:
    """One operation of the operator ``type``.

    ``inputs`` maps a parameter to its arguments: one, or several for a variadic parameter such as
    ``values`` of concat. A ``const`` operation has its value in ``attributes["val"]``.
    """

    type: str
    inputs: Mapping[str, Sequence[Argument]] = field(default_factory=dict)
    outputs: Sequence[Named] = ()
    blocks: Sequence[Block] = ()
    attributes: Mapping[str, Constant] = field(default_factory=dict)


@dataclass
class Block:
    """Operations in order of execution.

    ``outputs`` are names of values of this block or of a block around it.
    """

    operations: Sequence[Operation] = ()
    outputs: Sequence[str] = ()
    inputs: Sequence[Named] = ()
    attributes: Mapping[str, Constant] = field(default_factory=dict)


@dataclass
class Function:
    """A function. ``blocks`` has a body for each opset, such as ``CoreML7``; ``opset`` chooses."""

    inputs: Sequence[Named]
    opset: str
    blocks: Mapping[str, Block]
    attributes: Mapping[str, Constant] = field(default_factory=dict)

    @property
    def body(self) -> Block:
        """The block of the function's opset."""
        return self.blocks[self.opset]


def renamed(operation: Operation, names: Mapping[str, str]) -> Operation:
    """Return ``operation`` with other names of some values."""
    inputs = {
        key: [names.get(each, each) if isinstance(each, str) else each for each in arguments]
        for key, arguments in operation.inputs.items()
    }
    outputs = [Named(names.get(each.name, each.name), each.type) for each in operation.outputs]
    blocks = [
        replace(
            block,
            operations=[renamed(each, names) for each in block.operations],
            outputs=[names.get(each, each) for each in block.outputs],
        )
        for block in operation.blocks
    ]
    return replace(operation, inputs=inputs, outputs=outputs, blocks=blocks)


@dataclass
class Program:
    """Functions by name."""

    functions: Mapping[str, Function]
    version: int = 1
    attributes: Mapping[str, Constant] = field(default_factory=dict)


@dataclass
class Package:
    """An ``.mlpackage``.

    ``interfaces`` describes each function by name; the only function of a package is ``main``.
    ``specification_version`` is 6, 7, 8, 9 for iOS 15, 16, 17, 18. ``metadata`` has
    ``shortDescription``, ``versionString``, ``author``, ``license``; ``user_defined`` holds texts
    that other tools added.
    """

    specification_version: int
    program: Program
    interfaces: Mapping[str, Interface]
    default_function: str = "main"
    metadata: Mapping[str, str] = field(default_factory=dict)
    user_defined: Mapping[str, str] = field(default_factory=dict)

    def blocks(self) -> Iterator[Block]:
        """Yield every block of every function, outer blocks first."""
        stack = [
            block for each in self.program.functions.values() for block in each.blocks.values()
        ]
        while stack:
            block = stack.pop()
            yield block
            stack += [inner for operation in block.operations for inner in operation.blocks]
