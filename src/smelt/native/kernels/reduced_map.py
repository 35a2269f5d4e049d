"""``smelt.native::MapReduce``: a reduction of elementwise results that are never stored.

There are three schedules. If the innermost loop is reduced and long, it has a vector of partial
results. If it is reduced and short, it is unrolled, and the loop around it fills vectors. If it is
kept, rows are computed in pieces that stay in the first-level cache.
"""

from __future__ import annotations

import math
from typing import cast

from smelt.loops.algorithm import (
    Algorithm,
    Apply,
    Buffer,
    Expression,
    Load,
    Number,
    Stage,
)
from smelt.loops.lower import lower
from smelt.loops.printer import print_nest
from smelt.loops.schedule import Outermost, Partial, Schedule, Share, Split, Unroll
from smelt.native.kernels.epilogue import steps_operator
from smelt.native.kernels.fused import part_lines
from smelt.native.kernels.kernel import ANY, KernelContext, kernel
from smelt.native.kernels.reduce import LANES, Loops, loops_of
from smelt.native.kernels.reduction_table import reduced

MAP_REDUCE = "smelt.native::MapReduce"
PIECE = 256
"""The results of a row that are accumulated at once."""


@kernel(MAP_REDUCE, kinds=ANY, shared=True)
def reduced_map(cx: KernelContext) -> None:
    """Write the loops; each operator rounds as if its result were stored.

    The widest kept loop is shared among threads, except the innermost, which is cut into pieces.
    """
    cx.rounds_each = True
    loops = map_loops_of(cx)
    schedule = schedule_of(loops, cx.output().name)
    assert schedule is not None  # fusion asks ``schedule_of`` before it makes a MapReduce
    kept = loops.where(False)
    shareable = kept if loops.is_reduced[-1] else kept[:-1]
    widest = cx.body.widest([cast(int, axis.extent) for axis in shareable])
    if widest is not None:
        schedule += (Share(shareable[widest].name),)
    print_nest(lower(_algorithm(cx, loops), schedule), cx.body)


def map_loops_of(cx: KernelContext) -> Loops:
    """Return the loops of a MapReduce."""
    shape = cx.program.slots[cx.instruction.parts[-1].outputs[0]].sizes
    inputs = range(len(cx.instruction.inputs))
    return loops_of(shape, cx.ints("axes"), [cx.strided_input(i).broadcast(shape) for i in inputs])


def schedule_of(loops: Loops, result: str) -> Schedule | None:
    """Return the schedule; None if a separate map and reduction are faster."""
    if not any(loops.is_reduced):
        return None
    last, kept = loops.axes[-1], loops.where(False)
    if not loops.is_reduced[-1]:
        in_pieces = (Split(last.name, min(PIECE, last.extent)), Outermost(result))
        return in_pieces if last.extent >= LANES // 2 else None
    if last.extent >= LANES:
        return (Partial(last.name, LANES, after_all_loops=True),)
    fills_vectors = len(loops.where(True)) == 1 and kept and kept[-1].extent > LANES
    return (Unroll(last.name),) if fills_vectors else None


def _algorithm(cx: KernelContext, loops: Loops) -> Algorithm:
    """Return the reduction of the steps."""
    output, kept = cx.output(), loops.where(False)
    axes, op = loops.where(True), str(cx.attributes["reduction"])
    count = math.prod(axis.extent for axis in axes)
    value = reduced(op, output.type, axes, _element(cx, loops), count)
    to = Buffer(output.name, output.type, tuple(axis.extent for axis in kept))
    return Algorithm((Stage(to, kept, value),))


def _element(cx: KernelContext, loops: Loops) -> Expression:
    """Return the value of the fused steps for one element of each input."""
    lines, value = part_lines(cx)
    loads: list[Load | Number] = [
        load if any(f"{{{number}}}" in text for text in (*lines, value)) else Number(0)
        for number, load in enumerate(loops.loads())
    ]
    return Apply(steps_operator(lines, value), tuple(loads))
