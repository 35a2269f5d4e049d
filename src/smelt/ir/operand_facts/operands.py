"""What is known of the operands of one node, as the rows of the tables ask for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from math import prod
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from smelt.ir.constants import SMALL
from smelt.ir.same_shape import Dim

Size: TypeAlias = int | None
"""A size; None where only a run tells it."""


Elements: TypeAlias = Callable[[ir.Value], Sequence[Dim] | None]
"""What a vector or scalar of integers holds, as far as shapes tell; None if unknown."""


class Unknown(Exception):
    """What a row asks for is told by no number, so nothing is certain."""


class Operands:
    """The operands of ``node``, by position. Questions that nothing answers raise Unknown."""

    def __init__(self, node: ir.Node, elements: Elements, opset: int) -> None:
        self.node = node
        self.opset = opset
        self._elements = elements

    def given(self, index: int) -> bool:
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    def of(self, node: ir.Node) -> Operands:
        """Those of another node of the model."""
        return Operands(node, self._elements, self.opset)

    def graph(self, name: str) -> ir.Graph:
        """An attribute that is a graph."""
        attr = self._attribute(name)
        if attr is None:
            raise Unknown
        return attr.as_graph()

    def is_float(self, index: int) -> bool:
        dtype = self._value(index).dtype
        return dtype is not None and dtype.is_floating_point()

    def _value(self, index: int) -> ir.Value:
        value = self.node.inputs[index] if index < len(self.node.inputs) else None
        if value is None:
            raise Unknown
        return value

    def dims(self, index: int) -> tuple[Size, ...]:
        shape = self._value(index).shape
        if shape is None:
            raise Unknown
        return tuple(dim if isinstance(dim, int) else None for dim in shape.dims)

    def rank(self, index: int) -> int:
        return len(self.dims(index))

    def size(self, index: int, axis: int) -> int:
        size = self.dims(index)[axis]
        if size is None:
            raise Unknown
        return size

    def count(self, index: int) -> int:
        """How many elements an operand has."""
        return prod(self.size(index, axis) for axis in range(self.rank(index)))

    def held(self, index: int) -> list[int]:
        """The integers that an operand holds."""
        value = self._value(index)
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is not None:
            if tensor.nbytes > SMALL or not np.issubdtype(tensor.dtype.numpy(), np.integer):
                raise Unknown
            return [int(number) for number in tensor.numpy().reshape(-1)]
        known = self._elements(value)
        if known is None:
            raise Unknown
        numbers = [number for number in known if isinstance(number, int)]
        if len(numbers) < len(known):
            raise Unknown
        return numbers

    def floats(self, index: int) -> list[float]:
        """The floats that an operand holds."""
        tensor = ir.convenience.get_const_tensor(self._value(index))
        if tensor is None or tensor.nbytes > SMALL:
            raise Unknown
        return [float(number) for number in tensor.numpy().reshape(-1)]

    def number(self, name: str, default: int) -> int:
        """An attribute that is an integer."""
        attr = self._attribute(name)
        return default if attr is None else attr.as_int()

    def numbers(self, name: str) -> list[int]:
        """An attribute that is a list of integers; none is unknown."""
        attr = self._attribute(name)
        if attr is None:
            raise Unknown
        return list(attr.as_ints())

    def factors(self, name: str) -> list[float]:
        """An attribute that is a list of floats; none is unknown."""
        attr = self._attribute(name)
        if attr is None:
            raise Unknown
        return list(attr.as_floats())

    def factor(self, name: str, default: float) -> float:
        """An attribute that is a float."""
        attr = self._attribute(name)
        return default if attr is None else attr.as_float()

    def text(self, name: str, default: str) -> str:
        attr = self._attribute(name)
        return default if attr is None else attr.as_string()

    def texts(self, name: str) -> list[str]:
        """An attribute that is a list of texts; none is unknown."""
        attr = self._attribute(name)
        if attr is None:
            raise Unknown
        return list(attr.as_strings())

    def elements_of(self, name: str) -> int | None:
        """How many elements an attribute has that is a tensor; None without one."""
        attr = self._attribute(name)
        return None if attr is None else int(attr.as_tensor().size)

    def has(self, name: str) -> bool:
        return name in self.node.attributes

    def listed(self, name: str, index: int) -> list[int]:
        """Integers that were an attribute once and are an operand now."""
        return self.numbers(name) if self.has(name) else self.held(index)

    def _attribute(self, name: str) -> ir.Attr | None:
        attr = self.node.attributes.get(name)
        if attr is not None and attr.is_ref():
            raise Unknown
        return attr


Holds: TypeAlias = Callable[[Operands], bool]
Fact: TypeAlias = tuple[str, Holds]
"""What has to hold, in words, and whether it does; not asked where an operand is left out."""
Facts: TypeAlias = dict[str, tuple[Fact, ...]]
"""The rows of a subject by operators, several of which stand in one key with spaces between."""


def one_of(name: str, default: str, *known: str) -> Fact:
    """An attribute is one of some words."""
    return (f"{name} is one of {', '.join(known)}", lambda n: n.text(name, default) in known)


def at_least(name: str, least: int, said: str = "") -> Fact:
    """A number is no smaller than ``least``, where it is given."""
    words = said or f"{name} is {least} or more"
    return (words, lambda n: n.number(name, least) >= least)


def on_or_off(name: str) -> Fact:
    """An attribute is one of the two numbers that stand for no and yes."""
    return (f"{name} is 0 or 1", lambda n: n.number(name, 0) in (0, 1))


def together(*lists: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """The lists side by side; raises Unknown where their lengths differ: other rows say so."""
    if len({len(each) for each in lists}) > 1:
        raise Unknown
    return zip(*lists, strict=True)


def agree(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """True unless the shapes are surely not one."""
    if len(a) != len(b):
        return False
    return all(x == y or x is None or y is None for x, y in zip(a, b, strict=True))


def broadcast(shapes: Iterable[Sequence[Size]]) -> bool:
    """True unless sizes meet that differ, none of which is 1."""
    columns = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return all(len({size for size in sizes if size not in (1, None)}) < 2 for sizes in columns)


def fits(shape: Sequence[Size], whole: Sequence[Size]) -> bool:
    """True unless ``shape`` surely does not broadcast to ``whole``."""
    if len(shape) > len(whole):
        return False
    meets = whole[len(whole) - len(shape) :]
    return all(x in (1, None, y) or y is None for x, y in zip(shape, meets, strict=True))


def is_axis(n: Operands, index: int, default: int, name: str = "axis") -> bool:
    """True if an attribute names an axis of an operand."""
    rank = n.rank(index)
    return -rank <= n.number(name, default) < rank


def are_axes(axes: Sequence[int], rank: int) -> bool:
    """True if ``axes`` are some of ``rank``, each at most once."""
    return all(-rank <= axis < rank for axis in axes) and len({a % rank for a in axes}) == len(axes)


def is_single(index: int) -> Holds:
    """The operand has one element."""
    return lambda n: n.count(index) == 1
