"""Compute a nest on NumPy arrays, one statement at a time; tests compare the printed C with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smelt.loops import nest
from smelt.loops.integers import value_of
from smelt.loops.operators import LANES, ONE, ElementType
from smelt.program.run_sizes import Dim, Size

_NUMPY = {"float": "float32", "double": "float64"}


def run(
    nest: Iterable[nest.Statement],
    arrays: Mapping[str, np.ndarray],
    sizes: Mapping[str, int] | None = None,
    lanes: int = 8,
) -> None:
    """Compute a nest on flat ``arrays``, in place, with vectors of ``lanes`` elements.

    ``sizes`` has the run-time sizes by name. An access outside of an array raises IndexError.
    """
    _Run(dict(arrays), {**(sizes or {}), LANES: lanes}).block(nest)


def numpy_type(type_: ElementType) -> np.dtype[Any]:
    """Return the NumPy type of a C type: ``float32`` for ``float``."""
    return np.dtype(_NUMPY.get(type_.name, type_.name.removesuffix("_t")))


@dataclass
class _Run:
    """The arrays, and the values of variables."""

    arrays: dict[str, np.ndarray]
    values: dict[str, Any] = field(default_factory=dict)

    def block(self, statements: Iterable[nest.Statement]) -> None:
        """Compute statements in order."""
        for statement in statements:
            if not isinstance(statement, nest.Keep):
                self._statement(statement)

    def _statement(self, statement: nest.Statement) -> None:
        """Compute one statement."""
        match statement:
            case nest.For(name, start, stop, body, step):
                self.values[name] = self._index(start)
                while self.values[name] < self._index(stop):
                    self.block(body)
                    self.values[name] += self._index(step)
            case nest.If() | nest.When() | nest.IfNaN():
                self._branch(statement)
            case nest.Index(name, value):
                self.values[name] = self._index(value)
            case nest.Declare(name, value, type_, width):
                filled = np.full(self._lanes(width), self._value(value), numpy_type(type_))
                self.values[name] = filled if width != ONE else filled[0]
            case nest.Lines(name, operator, operands):
                self.values[name] = operator.numpy(*(self._value(each) for each in operands))
            case nest.Assign(name, value):
                self.values[name] = (
                    self._index(value) if isinstance(value, int | Size) else self._value(value)
                )
            case nest.Array(name, type_, size):
                self.arrays[name] = np.zeros(size, numpy_type(type_))
            case nest.RecordNaN(name, of, width):
                noted = np.isnan(self.values[of]) if of else np.zeros(self._lanes(width), bool)
                self.values[name] = self.values[name] | noted if of else noted
            case nest.Store():
                self._store(statement)

    def _branch(self, statement: nest.If | nest.When | nest.IfNaN) -> None:
        """Compute the statements that a condition chooses."""
        match statement:
            case nest.If(condition, then, otherwise):
                if isinstance(condition, str):
                    is_true = value_of(condition, self.values)
                else:
                    is_true = self._value(condition)
                self.block(then if is_true else otherwise)
            case nest.When(condition, then, otherwise):
                self.block(then if value_of(condition, self.values) else otherwise)
            case nest.IfNaN(flags, then):
                if any(np.any(self.values[name]) for name, _ in flags):
                    self.block(then)

    def _store(self, store: nest.Store) -> None:
        """Compute a store."""
        at, n = self._index(store.at), self._lanes(store.width)
        if store.room is not None:
            n = min(n, self._index(store.room))
        value = np.broadcast_to(self._value(store.value), self._lanes(store.width))[:n]
        self._inside(store.array, at, n)
        self.arrays[store.array][at : at + n] = value

    def _value(self, value: nest.Value) -> Any:
        """Return a value: a NumPy scalar, or an array with one element per lane for a vector."""
        match value:
            case nest.Name(name):
                return self.values[name]
            case nest.Constant(number, type_):
                exact = self._index(number) if isinstance(number, Size) else number
                return numpy_type(type_).type(exact)
            case nest.Read(array, at, _, width, step):
                first, n = self._index(at), self._lanes(width)
                # Every second element is picked from two whole vectors.
                self._inside(array, first, n * step)
                read = self.arrays[array][first : first + n * step : step]
                return read.copy() if width != ONE else read[0]
            case nest.Call(operator, operands):
                with np.errstate(all="ignore"):
                    return operator.numpy(*(self._value(each) for each in operands))

            case nest.Row(function, array, at, count):
                first, n = self._index(at), self._index(count)
                self._inside(array, first, n)
                return function.numpy(self.arrays[array][first : first + n])

    def _inside(self, array: str, first: int, n: int) -> None:
        """Raise IndexError if elements are outside of an array."""
        if first < 0 or first + n > self.arrays[array].size:
            raise IndexError(f"{array}[{first}] to {first + n} of {self.arrays[array].size}")

    def _index(self, value: Dim) -> int:
        """Return the value of an index: a number, or a Size computed from the variables."""
        return value_of(str(value), self.values) if isinstance(value, Size) else value

    def _lanes(self, width: str) -> int:
        """Return the elements of a width: the value of ``LANES`` for a vector, else the number."""
        return int(self.values[LANES]) if width == LANES else int(width)
