"""The results of an artifact as sums of contractions, from which its derivatives are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from smelt.errors import UsageError
from smelt.ir.same_shape import Dim
from smelt.operators.contraction import parse, sizes_of


@dataclass(frozen=True)
class Summand:
    """A contraction of the operands with the numbers ``operands``, times ``factor``."""

    equation: str
    operands: tuple[int, ...]
    factor: Any = 1


@dataclass(frozen=True)
class Expansion:
    """Each result as a sum of contractions of operands of ``shapes``.

    ``constants`` has the arrays of operands that calls leave out, by number. ``options`` are those
    of ``smelt.einsum`` for a summand or its derivative.
    """

    results: tuple[tuple[Summand, ...], ...]
    shapes: Sequence[Sequence[Dim]]
    dtype: np.dtype
    semiring: Any = "sum_product"
    constants: Mapping[int, np.ndarray] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def inputs(self) -> list[int]:
        """The numbers of the operands that a call gives."""
        return [number for number in range(len(self.shapes)) if number not in self.constants]

    def check(self, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[Any]) -> None:
        """Raise UsageError E671 unless a call may give arrays of ``shapes`` and ``dtypes``."""
        if len(shapes) != len(self.inputs):
            raise _misfit(f"{len(shapes)} arrays for {len(self.inputs)} operands")
        names: dict[str, int] = {}
        for number, shape, dtype in zip(self.inputs, shapes, dtypes, strict=True):
            declared = self.shapes[number]
            fits = len(shape) == len(declared) and all(
                names.setdefault(str(dim), size) == size
                if not isinstance(dim, int)
                else dim == size
                for dim, size in zip(declared, shape, strict=True)
            )
            if not fits or np.dtype(dtype) != self.dtype:
                expected = f"{self.dtype}[{','.join(map(str, declared))}]"
                raise _misfit(f"operand {number} is {dtype}{list(shape)}, not {expected}")

    def whole(self, inputs: Sequence[Any], constant: Any) -> list[Any]:
        """Return ``inputs`` with the constants, through the function ``constant``, in between."""
        given = iter(inputs)
        return [
            constant(self.constants[number]) if number in self.constants else next(given)
            for number in range(len(self.shapes))
        ]

    def result_shapes(self, shapes: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the shape of each result for inputs of ``shapes``."""
        whole = self.whole(shapes, np.shape)
        found = []
        for first, *_ in self.results:
            operands = [whole[number] for number in first.operands]
            equation = parse(first.equation, [len(shape) for shape in operands])
            sizes = sizes_of(equation.terms, operands)
            found.append(tuple(int(str(sizes[label])) for label in equation.out))
        return found


def _misfit(what: str) -> UsageError:
    """Return E671: the values of a call are not those the artifact was compiled for."""
    return UsageError(
        "E671",
        what,
        why="a compiled contraction converts no values that JAX or PyTorch differentiate",
        fix="pass one value for each operand, of the shape and element type it was compiled for",
    )
