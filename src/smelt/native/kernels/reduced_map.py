"""``smelt.native::MapReduce``: a reduction of elementwise results that are never stored.

There are three methods. If the innermost loop is reduced and long, it has a vector of partial
results. If it is reduced and short, it is unrolled, and the loop around it fills vectors. If it is
kept, rows are computed in pieces that stay in the first-level cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from smelt.native.kernels.fused import part_lines
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.nest import Access, collapse
from smelt.native.kernels.reduce import LANES, Reducer
from smelt.native.kernels.reduction_table import FLOATS
from smelt.native.kernels.row_sums import by_halves
from smelt.program.instruction import Instruction

MAP_REDUCE = "smelt.native::MapReduce"
PIECE = 256
"""The results of a row that are accumulated at once."""


@dataclass(frozen=True)
class MapLoops:
    """The loops over the elements of a map: sizes, accesses and reduction.

    ``lines`` are the C statements for one element, and ``value`` their result.
    """

    sizes: tuple[int, ...]
    write: Access
    reads: Sequence[Access]
    lines: Sequence[str]
    value: str
    reducer: Reducer

    def where(self, reduced: bool) -> list[int]:
        """Return the loops that are reduced, or those that are kept."""
        return [i for i, stride in enumerate(self.write.strides) if (stride == 0) is reduced]

    def accumulate(self, cx: KernelContext, result: str, variables: Sequence[str]) -> None:
        """Write the accumulation of the element at ``variables`` into ``result``."""
        body, texts = cx.body, (*self.lines, self.value)
        for number, read in enumerate(self.reads):
            if any(f"{{{number}}}" in text for text in texts):
                body.line(f"const {read.type.name} v{number} = {read.at(variables)};")
        values = [f"v{number}" for number in range(len(self.reads))]
        for line in self.lines:
            body.line(line.format(*values))
        body.line(f"const {self.reducer.type.name} v = {self.value.format(*values)};")
        body.line(f"{result} = {self.reducer.step(result, 'v')};")


def map_loops_of(cx: KernelContext) -> MapLoops:
    """Return the loops of a MapReduce."""
    last = cx.instruction.parts[-1]
    shape = cx.program.slots[last.outputs[0]].sizes
    axes, output = cx.ints("axes"), cx.output()
    strides, step = [0] * len(shape), 1  # of the output; 0 along reduced dims
    for axis in reversed([axis for axis in range(len(shape)) if axis not in axes]):
        strides[axis] = step
        step *= shape[axis]
    reads = [cx.strided_input(i).broadcast(shape) for i in range(len(cx.instruction.inputs))]
    sizes, (write, *read_accesses) = collapse(shape, (output.access(strides), *reads))
    lines, value = part_lines(cx)
    reduction = str(cx.attributes["reduction"])
    stored = Instruction(reduction, last.outputs, cx.instruction.outputs)
    reducer = Reducer(
        KernelContext(cx.program, stored), FLOATS[reduction], math.prod(shape[i] for i in axes)
    )
    return MapLoops(sizes, write, read_accesses, lines, value, reducer)


def emitter_of(sizes: Sequence[int], reduced: Sequence[bool]) -> Callable[..., None] | None:
    """Return the function that writes such loops; None if a separate map and
    reduction are faster."""
    if not sizes or not any(reduced):
        return None
    if not reduced[-1]:
        return _emit_rows if sizes[-1] >= LANES // 2 else None
    if sizes[-1] >= LANES:
        return _emit_lanes
    around = [size for size, each in zip(sizes, reduced, strict=True) if not each]
    return _emit_written_out if reduced.count(True) == 1 and around[-1:] > [LANES] else None


@kernel(MAP_REDUCE, kinds=ANY, shared=True)
def reduced_map(cx: KernelContext) -> None:
    """Write the loops; each operator rounds as if its result were stored."""
    cx.rounds_each = True
    loops = map_loops_of(cx)
    emitter = emitter_of(loops.sizes, [stride == 0 for stride in loops.write.strides])
    assert emitter is not None  # else they would not have become one
    emitter(cx, loops)


def _names(loops: MapLoops) -> list[str]:
    """Return the loop variables ``i0``, ``i1``, ..."""
    return [f"i{i}" for i in range(len(loops.sizes))]


def _open_kept_loops(
    cx: KernelContext, loops: MapLoops, dims: Sequence[int], stack: ExitStack
) -> None:
    """Enter loops over ``dims``, which the reduction keeps, into ``stack``.

    With several threads, `widest` chooses the loop that is split into shards.
    """
    sizes = [loops.sizes[i] for i in dims]
    stack.enter_context(cx.body.loops([f"i{i}" for i in dims], sizes, cx.body.widest(sizes)))


def _emit_lanes(cx: KernelContext, loops: MapLoops) -> None:
    """Write loops that accumulate in ``LANES`` partial results, and combine these at the end.

    ```
    for (ptrdiff_t i = 0; i < 64; i += 16)
        for (ptrdiff_t j = 0; j < 16; ++j) {
            const float part0 = x0[i0 * 70 + (i + j)] - x1[(i + j)];
            lane[j] = lane[j] + part0 * part0;
    ```
    """
    body, names, type_ = cx.body, _names(loops), loops.reducer.type.name
    *outer, inner = loops.where(True)
    divisible = loops.sizes[inner] - loops.sizes[inner] % LANES
    with ExitStack() as stack:
        _open_kept_loops(cx, loops, loops.where(False), stack)
        body.line(f"{type_} lane[{LANES}];")
        with body.loop("j", LANES):
            body.line(f"lane[j] = {loops.reducer.start};")
        with body.loops([names[i] for i in outer], [loops.sizes[i] for i in outer]):
            names[inner] = "(i + j)"
            with body.loop("i", divisible, step=LANES), body.loop("j", LANES):
                loops.accumulate(cx, "lane[j]", names)
            names[inner] = f"({divisible} + j)"
            if divisible < loops.sizes[inner]:
                with body.loop("j", loops.sizes[inner] - divisible):
                    loops.accumulate(cx, "lane[j]", names)
        body.lines(by_halves(f"lane[j] = {loops.reducer.join('lane[j]', 'lane[j + {0}]')};"))
        body.line(f"{loops.write.at(names)} = {loops.reducer.final('lane[0]')};")


def _emit_written_out(cx: KernelContext, loops: MapLoops) -> None:
    """Write loops whose short inner loop is unrolled."""
    body, names = cx.body, _names(loops)
    with ExitStack() as stack:
        _open_kept_loops(cx, loops, loops.where(False), stack)
        body.line(f"{loops.reducer.type.name} a = {loops.reducer.start};")
        for i in range(loops.sizes[-1]):
            names[-1] = str(i)
            with body.block(""):
                loops.accumulate(cx, "a", names)
        body.line(f"{loops.write.at(names)} = {loops.reducer.final('a')};")


def _emit_rows(cx: KernelContext, loops: MapLoops) -> None:
    """Write loops that accumulate ``PIECE`` results of a row at a time.

    ```
    for (ptrdiff_t c = 0; c < 600; c += 256) {
        float a[256];
        for (ptrdiff_t i0 = 0; i0 < 3; ++i0)
            for (ptrdiff_t j = 0; j < end; ++j)
                a[j] = a[j] + part0 * part0;
    ```
    """
    body, names, row = cx.body, _names(loops), loops.sizes[-1]
    reduced, piece = loops.where(True), min(PIECE, row)
    names[-1] = "(c + j)"
    with ExitStack() as stack:
        _open_kept_loops(cx, loops, loops.where(False)[:-1], stack)
        stack.enter_context(body.loop("c", row, step=piece))
        body.line(f"{loops.reducer.type.name} a[{piece}];")
        end = str(piece)
        if row % piece:
            end = "end"
            body.line(f"const ptrdiff_t end = {row} - c < {piece} ? {row} - c : {piece};")
        with body.loop("j", end):
            body.line(f"a[j] = {loops.reducer.start};")
        inner = body.loops([names[i] for i in reduced], [loops.sizes[i] for i in reduced])
        with inner, body.loop("j", end):
            loops.accumulate(cx, "a[j]", names)
        with body.loop("j", end):
            body.line(f"{loops.write.at(names)} = {loops.reducer.final('a[j]')};")
