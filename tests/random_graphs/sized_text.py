"""Writes ONNX text, graph in graph, of values that have a kind and any sizes.

All floats are matrices, and every operator here takes matrices of any sizes from 1 on, so nearly
each draw is valid whatever the rounds leave. Conditions read sizes and counters alone: rounding
decides nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

OPSET = 20
LIMIT = 7
"""Rows and columns that the end of a round may leave, where rounds are many."""

CONSTANTS = {
    **{f"k{n}": f"int64 k{n} = {{{n}}}" for n in range(8)},
    **{f"v{n}": f"int64[1] v{n} = {{{n}}}" for n in (0, 1, 2, 3, LIMIT)},
    "vm1": "int64[1] vm1 = {-1}",
    "v10": "int64[2] v10 = {1, 0}",
    "t": "bool t = {1}",
    "half": "float half = {0.5}",
    "weight": "float[1,3] weight = {0.5, -1, 0.25}",
}
EDGES = [f"k{n}" for n in range(8)]


@dataclass
class Scope:
    """The names that can be read in one graph, by kind, and the statements so far."""

    floats: list[str]
    numbers: list[str]
    flags: list[str]
    lines: list[str] = field(default_factory=list)


class Writer:
    """Writes one model; every choice comes from ``rng``. Names begin with ``mark``."""

    def __init__(self, seed: int, mark: str = "") -> None:
        self.rng = random.Random(seed)
        self.mark = mark
        self.count = 0
        self.scopes = [Scope([], [*EDGES[1:4]], [])]
        self.functions: list[str] = []
        self.outputs: list[str] = []

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    def name(self, prefix: str = "r") -> str:
        self.count += 1
        return f"{self.mark}{prefix}{self.count}"

    def do(self, call: str, prefix: str = "r") -> str:
        """One node; the name of its result."""
        result = self.name(prefix)
        self.scope.lines.append(f"{result} = {call}")
        return result

    def float(self, call: str) -> str:
        """A node that gives a matrix."""
        self.scope.floats.append(self.do(call))
        return self.scope.floats[-1]

    def number(self, call: str) -> str:
        """A node that gives an int64 scalar."""
        self.scope.numbers.append(self.do(call))
        return self.scope.numbers[-1]

    def any_float(self) -> str:
        """A matrix, a young one by preference."""
        pool = self.scope.floats[-3:] if self.rng.random() < 0.6 else self.scope.floats
        return self.rng.choice(pool)

    def any_number(self) -> str:
        pool = self.scope.numbers[-3:] if self.rng.random() < 0.7 else self.scope.numbers
        return self.rng.choice(pool)

    def size(self) -> str:
        """The number of rows, columns or elements of a matrix, asked in one of many ways."""
        of, axis = self.any_float(), self.rng.choice([0, 1])
        forms: list[Callable[[], str]] = [
            lambda: f"Gather({self.do(f'Shape({of})')}, k{axis})",
            lambda: f"Size({of})",
            lambda: f"ReduceProd<keepdims=0>({self.do(f'Shape({of})')})",
            lambda: f"ReduceMax<keepdims=0>({self.do(f'Shape({of})')})",
            lambda: f"Squeeze({self.do(f'Shape<start={axis}, end={axis + 1}>({of})')})",
            lambda: f"Size({self.do(f'Squeeze({self.first(of, 1 - axis)}, v{1 - axis})')})",
        ]
        return self.number(self.rng.choice(forms)())

    def small(self, number: str) -> str:
        """``number`` as a vector of one, from 1 to 4."""
        rest = self.do(f"Mod({number}, k4)")
        return self.do(f"Unsqueeze({self.do(f'Add({rest}, k1)')}, v0)")

    def first(self, of: str, axis: int) -> str:
        """The first row or column."""
        return self.do(f"Slice({of}, v0, v1, v{axis})")

    def shape(self) -> str:
        """Two sizes from 1 to 4, which a run computes."""
        return self.do(
            f"Concat<axis=0>({self.small(self.size())}, {self.small(self.any_number())})"
        )

    @contextmanager
    def inner(self, floats: list[str], numbers: list[str], flags: list[str]) -> Iterator[Scope]:
        """A graph inside, which reads what the graphs around it have, too."""
        outer = self.scope
        scope = Scope(outer.floats + floats, outer.numbers + numbers, outer.flags + flags)
        self.scopes.append(scope)
        yield scope
        self.scopes.pop()


Move: TypeAlias = Callable[[Writer], object]


def typed(w: Writer, name: str) -> str:
    """A declaration of a matrix: names of its own for both dims, or nothing."""
    dims = f"[{w.name('D')},{w.name('D')}]" if w.rng.random() < 0.5 else "[]"
    return f"float{dims} {name}"


def draw_moves(w: Writer, moves: list[Move], count: int) -> None:
    """``count`` of ``moves``, one after another."""
    for _ in range(count):
        w.rng.choice(moves)(w)
