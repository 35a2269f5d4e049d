"""The operands of one node and their known facts, as queried by the tables of requirements."""

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
"""A size; None if it is known only at run time."""


Elements: TypeAlias = Callable[[ir.Value], Sequence[Dim] | None]
"""Returns the elements of a small integer tensor as far as shape inference tracks them, or None."""


class Unknown(Exception):
    """The answer to a query is not known, so the requirement is not checked."""


class Operands:
    """The operands of ``node``, by position. Queries without a known answer raise Unknown."""

    def __init__(self, node: ir.Node, elements: Elements, opset: int) -> None:
        self.node = node
        self.opset = opset
        self._elements = elements

    def is_present(self, index: int) -> bool:
        """True if operand ``index`` is present."""
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    def of(self, node: ir.Node) -> Operands:
        """Return the operands of ``node``, another node of the same model."""
        return Operands(node, self._elements, self.opset)

    def graph(self, name: str) -> ir.Graph:
        """Return the graph attribute ``name``."""
        attr = self._attribute(name)
        if attr is None:
            raise Unknown
        return attr.as_graph()

    def is_float(self, index: int) -> bool:
        """True if operand ``index`` has a floating-point type."""
        dtype = self._value(index).dtype
        return dtype is not None and dtype.is_floating_point()

    def _value(self, index: int) -> ir.Value:
        """Return operand ``index``; raises Unknown if it is absent."""
        value = self.node.inputs[index] if index < len(self.node.inputs) else None
        if value is None:
            raise Unknown
        return value

    def dims(self, index: int) -> tuple[Size, ...]:
        """Return the shape of operand ``index``, with None for symbolic dims."""
        shape = self._value(index).shape
        if shape is None:
            raise Unknown
        return tuple(dim if isinstance(dim, int) else None for dim in shape.dims)

    def rank(self, index: int) -> int:
        """Return the rank of operand ``index``."""
        return len(self.dims(index))

    def size(self, index: int, axis: int) -> int:
        """Return the size of operand ``index`` along ``axis``."""
        size = self.dims(index)[axis]
        if size is None:
            raise Unknown
        return size

    def count(self, index: int) -> int:
        """Return the number of elements of operand ``index``."""
        return prod(self.size(index, axis) for axis in range(self.rank(index)))

    def integers(self, index: int) -> list[int]:
        """Return the elements of operand ``index``, integers that are constant or tracked."""
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
        """Return the floats that the constant operand ``index`` holds."""
        tensor = ir.convenience.get_const_tensor(self._value(index))
        if tensor is None or tensor.nbytes > SMALL:
            raise Unknown
        return [float(number) for number in tensor.numpy().reshape(-1)]

    def number(self, name: str, default: int) -> int:
        """Return the integer attribute ``name``, or ``default``."""
        attr = self._attribute(name)
        return default if attr is None else attr.as_int()

    def numbers(self, name: str) -> list[int]:
        """Return the attribute ``name``, a list of integers; raises Unknown if absent."""
        attr = self._attribute(name)
        if attr is None:
            raise Unknown
        return list(attr.as_ints())

    def factors(self, name: str) -> list[float]:
        """Return the attribute ``name``, a list of floats; raises Unknown if absent."""
        attr = self._attribute(name)
        if attr is None:
            raise Unknown
        return list(attr.as_floats())

    def factor(self, name: str, default: float) -> float:
        """Return the float attribute ``name``, or ``default``."""
        attr = self._attribute(name)
        return default if attr is None else attr.as_float()

    def text(self, name: str, default: str) -> str:
        """Return the text attribute ``name``, or ``default``."""
        attr = self._attribute(name)
        return default if attr is None else attr.as_string()

    def texts(self, name: str) -> list[str]:
        """Return the attribute ``name``, a list of texts; raises Unknown if absent."""
        attr = self._attribute(name)
        if attr is None:
            raise Unknown
        return list(attr.as_strings())

    def elements_of(self, name: str) -> int | None:
        """Return the number of elements of the tensor attribute ``name``; None without one."""
        attr = self._attribute(name)
        return None if attr is None else int(attr.as_tensor().size)

    def has(self, name: str) -> bool:
        """True if the node has the attribute ``name``."""
        return name in self.node.attributes

    def listed(self, name: str, index: int) -> list[int]:
        """Return the integers of attribute ``name`` or, in later opsets, of operand ``index``."""
        return self.numbers(name) if self.has(name) else self.integers(index)

    def _attribute(self, name: str) -> ir.Attr | None:
        """Return attribute ``name`` or None; raises Unknown if it is a reference."""
        attr = self.node.attributes.get(name)
        if attr is not None and attr.is_ref():
            raise Unknown
        return attr


Holds: TypeAlias = Callable[[Operands], bool]
Fact: TypeAlias = tuple[str, Holds]
"""A requirement in words, and its check; skipped where an operand is absent."""
Facts: TypeAlias = dict[str, tuple[Fact, ...]]
"""Requirements by operator; a key may name several operators, separated by spaces."""


def one_of(name: str, default: str, *known: str) -> Fact:
    """Require that the text attribute ``name`` is one of ``known``."""
    return (f"{name} is one of {', '.join(known)}", lambda n: n.text(name, default) in known)


def at_least(name: str, least: int, phrase: str = "") -> Fact:
    """Require that the integer attribute ``name`` is at least ``least`` where present."""
    words = phrase or f"{name} is {least} or more"
    return (words, lambda n: n.number(name, least) >= least)


def on_or_off(name: str) -> Fact:
    """Require that the integer attribute ``name`` is 0 or 1."""
    return (f"{name} is 0 or 1", lambda n: n.number(name, 0) in (0, 1))


def zip_known(*lists: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Zip ``lists``; raises Unknown if their lengths differ, which other requirements report."""
    if len({len(list_) for list_ in lists}) > 1:
        raise Unknown
    return zip(*lists, strict=True)


def agree(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """True unless the shapes ``a`` and ``b`` surely differ."""
    if len(a) != len(b):
        return False
    pairs = zip(a, b, strict=True)
    return all(size == other or size is None or other is None for size, other in pairs)


def broadcast(shapes: Iterable[Sequence[Size]]) -> bool:
    """True unless two known sizes that meet on an axis differ and neither is 1.

    Shapes are aligned at their last axes; a shape without an axis counts as 1 there.
    """
    columns = zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1)
    return all(len({size for size in sizes if size not in (1, None)}) < 2 for sizes in columns)


def may_broadcast(shape: Sequence[Size], target: Sequence[Size]) -> bool:
    """True unless ``shape`` surely does not broadcast to ``target``."""
    if len(shape) > len(target):
        return False
    aligned = zip(shape, target[len(target) - len(shape) :], strict=True)
    return all(size in (1, None, wanted) or wanted is None for size, wanted in aligned)


def without_axis(dims: Sequence[Size], axis: int) -> list[Size]:
    """Return ``dims`` without the size at ``axis``, which is >= 0."""
    return [size for index, size in enumerate(dims) if index != axis]


def is_axis(n: Operands, index: int, default: int, name: str = "axis") -> bool:
    """True if the attribute ``name`` is an axis of operand ``index``."""
    rank = n.rank(index)
    return -rank <= n.number(name, default) < rank


def are_axes(axes: Sequence[int], rank: int) -> bool:
    """True if ``axes`` are distinct axes of a tensor of ``rank``."""
    exist = all(-rank <= axis < rank for axis in axes)
    return exist and len({axis % rank for axis in axes}) == len(axes)


def is_single(index: int) -> Holds:
    """Require that operand ``index`` has one element."""
    return lambda n: n.count(index) == 1
