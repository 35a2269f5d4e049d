"""No compiler may conclude from the types of pointers that a kernel leaves memory as it is.

One arena holds tensors of many types, and moves work by the size of an element. C lets a compiler
assume that a store of one type changes no object of another, so a kernel that reads integers as
floats computes wrong numbers once calls are inlined. Graphs here move and add small integers of
every type, so results are exact, and equal whatever a compiler assumes and however it optimizes.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from c_library import Library, random_inputs

PLAIN = ("-std=c99", "-w", "-DSMELT_NO_DISPATCH")
TRUSTED = (*PLAIN, "-O1", "-fno-strict-aliasing")
LEVELS = ("-O2", "-O2 -fno-strict-aliasing", "-O3", "-O3 -fno-strict-aliasing", "-O3 -march=native")
CODES = {
    "float": 1,
    "uint8": 2,
    "int8": 3,
    "uint16": 4,
    "int16": 5,
    "int32": 6,
    "int64": 7,
    "bool": 9,
    "float16": 10,
    "double": 11,
    "uint32": 12,
    "uint64": 13,
}
RUNNING = ("int32", "int64", "uint32", "uint64", "float", "double")
SUMMED = (*RUNNING, "int8", "uint8", "int16", "uint16")
KINDS = ("int32", "int32", "int32", "uint32", "float", "int8", "float16", "double", "bool", "int64")
Shape = tuple[int, ...]


class Drawn:
    """A random graph: each step reads the last value, or an earlier one, of one element type."""

    def __init__(self, seed: int, low: int, high: int) -> None:
        self.rng = np.random.default_rng(seed)
        kind = str(self.rng.choice(KINDS))
        shape = tuple(int(n) for n in self.rng.integers(low, high + 1, 2))
        self.values: list[tuple[str, str, Shape]] = [("x", kind, shape)]
        self.constants: list[str] = []
        self.lines: list[str] = []
        steps: list[Callable[[str, str, Shape], None]] = [
            *[self.transpose] * 4, *[self.running] * 3, self.gather, self.cut, self.join,
            self.add, self.convert, self.reshape,
        ]  # fmt: skip
        while len(self.lines) < 9:
            last = -1 if self.rng.random() < 0.7 else int(self.rng.integers(len(self.values)))
            steps[int(self.rng.integers(len(steps)))](*self.values[last])

    def emit(self, text: str, kind: str, shape: Shape) -> None:
        name = f"v{len(self.values)}"
        self.lines.append(f"{name} = {text}")
        self.values.append((name, kind, shape))

    def constant(self, array: np.ndarray) -> str:
        name, sizes = f"k{len(self.constants)}", ",".join(map(str, array.shape))
        numbers = ",".join(map(str, array.ravel()))
        self.constants.append(f"int64{f'[{sizes}]' if sizes else ''} {name} = {{{numbers}}}")
        return name

    def axis(self, shape: Shape) -> int:
        return int(self.rng.integers(len(shape)))

    def transpose(self, name: str, kind: str, shape: Shape) -> None:
        perm = [int(i) for i in self.rng.permutation(len(shape))]
        self.emit(f"Transpose<perm={perm}>({name})", kind, tuple(shape[i] for i in perm))

    def running(self, name: str, kind: str, shape: Shape) -> None:
        if kind in RUNNING:
            axis, back = self.constant(np.array(self.axis(shape))), self.rng.integers(2)
            self.emit(f"CumSum<reverse={back}>({name}, {axis})", kind, shape)

    def gather(self, name: str, kind: str, shape: Shape) -> None:
        axis = self.axis(shape)
        rows = self.constant(np.arange(shape[axis])[::-1])
        self.emit(f"Gather<axis={axis}>({name}, {rows})", kind, shape)

    def cut(self, name: str, kind: str, shape: Shape) -> None:
        axis = self.axis(shape)
        if shape[axis] > 3:
            ends = [self.constant(np.array([n])) for n in (1, shape[axis], axis)]
            left = (*shape[:axis], shape[axis] - 1, *shape[axis + 1 :])
            self.emit(f"Slice({name}, {', '.join(ends)})", kind, left)

    def join(self, name: str, kind: str, shape: Shape) -> None:
        axis = self.axis(shape)
        both = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
        if np.prod(both) < 4000:
            self.emit(f"Concat<axis={axis}>({name}, {name})", kind, both)

    def add(self, name: str, kind: str, shape: Shape) -> None:
        like = [other for other, *type_ in self.values if type_ == [kind, shape]]
        op = "Add" if kind in SUMMED else "Or" if kind == "bool" else "Max"
        self.emit(f"{op}({name}, {self.rng.choice(like)})", kind, shape)

    def convert(self, name: str, kind: str, shape: Shape) -> None:
        """By way of booleans, so that every number is small in the next type, too."""
        to = str(self.rng.choice(list(CODES)))
        self.emit(f"Cast<to=9>({name})", "bool", shape)
        self.emit(f"Cast<to={CODES[to]}>({self.values[-1][0]})", to, shape)

    def reshape(self, name: str, kind: str, shape: Shape) -> None:
        turned = shape[::-1]
        self.emit(f"Reshape({name}, {self.constant(np.array(turned))})", kind, turned)

    def graph(self) -> str:
        """Whatever no step reads is returned."""
        (_, kind, shape), *made = self.values
        read = " ".join(line.partition("(")[2] for line in self.lines)
        ends = [v for v in made if f"{v[0]}," not in read and f"{v[0]})" not in read]
        returned = ", ".join(f"{k}[{','.join(map(str, s))}] {n}" for n, k, s in ends)
        constants = f"<{', '.join(self.constants)}>" if self.constants else ""
        sizes = ",".join(map(str, shape))
        return f"g ({kind}[{sizes}] x) => ({returned}) {constants} {{ {' '.join(self.lines)} }}"


FOUND = {
    "turned between running sums": "g (int32[5,5] x) => (int32[5,5] y)"
    " <int64 a = {0}, int64[5] r = {4,3,2,1,0}>"
    " { u = Gather<axis=1>(x, r) v = CumSum(u, a) w = Transpose<perm=[1,0]>(v) y = CumSum(w, a) }",
    "turned and cut": "g (int32[5,5] x) => (int32[5,10] y, int32[9,5] z)"
    " <int64[1] n = {9}, int64[1] o = {0}, int64[1] a = {1}, int64[1] m = {-1}, int64 r = {0}>"
    " { c = Concat<axis=0>(x, x) t = Transpose<perm=[1,0]>(c) y = Min(t, t)"
    " s = Slice(t, n, o, a, m) u = Transpose<perm=[1,0]>(s) z = CumSum<reverse=1>(u, r) }",
}
"""Graphs that GCC 12 computed wrong at -O2 or -O3 while Transpose moved integers as floats."""


def drawn(first: int, count: int, low: int, high: int) -> dict[str, str]:
    return {str(seed): Drawn(seed, low, high).graph() for seed in range(first, first + count)}


def results(graphs: Mapping[str, str], flags: tuple[str, ...]) -> dict[str, list[bytes]]:
    library = Library(graphs, 20, flags)
    inputs = {name: random_inputs(library.models[name].source, seed=1) for name in graphs}
    return {name: [a.tobytes() for a in library.run(name, inputs[name])] for name in graphs}


def check(graphs: Mapping[str, str], levels: tuple[str, ...]) -> None:
    expected = results(graphs, TRUSTED)
    for level in levels:
        got = results(graphs, (*PLAIN, *level.split()))
        wrong = [graphs[name] for name in graphs if got[name] != expected[name]]
        assert not wrong, f"{level}: {wrong}"


def test_the_compiler_of_this_machine_keeps_every_store() -> None:
    check(FOUND | drawn(0, 6, 5, 7), ("-O2", "-O3"))


COMPILERS = (
    "gcc-11",
    "gcc-12",
    "gcc-13",
    "gcc-14",
    "gcc-15",
    "clang",
    "clang-14",
    "clang-19",
    "zig",
)


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high"), [(5, 7), (9, 23)])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_every_compiler_keeps_every_store(
    compiler: str, low: int, high: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"there is no {compiler} here")
    monkeypatch.setenv("CC", "zig cc" if compiler == "zig" else compiler)
    for first in range(1000, 1200, 40):
        check(FOUND | drawn(first, 40, low, high), LEVELS)
