"""If and Loop, whose bodies are functions of this process that are bound once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smelt.targets.host.kernels.kernel import Array, Call, Step, kernel
from smelt.targets.host.kernels.selected import checked


@kernel("If")
def branch(call: Call) -> Step:
    """Return the step of an If, which runs one of its two bodies and copies the results."""
    then, other = call.bodies
    split, count = 1 + call.integer("split"), len(call.inputs)

    def run(*arrays: Array) -> None:
        """Run the chosen body, and copy its results to the outputs."""
        captured = arrays[1:split] if arrays[0].all() else arrays[split:count]
        results = (then if arrays[0].all() else other)(*captured)
        _copy(results, arrays[count:])

    return Step(run)


@kernel("Loop")
def loop(call: Call) -> Step:
    """Return the step of a Loop.

    States pass from iteration to iteration; scan inputs are read as views.
    """
    (body,) = call.bodies
    states, inputs = call.integer("states"), len(call.inputs)
    reads, writes = (tuple(map(bool, call.ints(name))) for name in ("reads", "writes"))
    counted = bool(call.attributes["counted"])
    trip, finds = call.integer("trip"), bool(call.attributes["finds"])
    rounds = call.outputs[states].shape[0] if finds else 0
    if trip < 0 and reads:
        trip = call.input(2 + states).shape[0]

    def run(*arrays: Array) -> None:
        """Run the iterations, then copy the last states."""
        count, condition, *rest = arrays[:inputs]
        outputs = arrays[inputs:]
        carried, rows, captured = (
            rest[:states],
            rest[states:][: len(reads)],
            rest[states:][len(reads) :],
        )
        limit = trip if trip >= 0 else None if count is None else int(count.reshape(()))
        going = condition is None or bool(condition.all())
        i = 0
        while going and (limit is None or i < limit):
            operands = [row[_at(i, trip, back)] for row, back in zip(rows, reads, strict=True)]
            if counted:
                head = (np.array(i, np.int64), np.array(going))
                last, *results = body(*head, *carried, *operands, *captured)
                going = bool(last.all())
            else:
                results = list(body(*carried, *operands, *captured))
            carried = results[:states]
            if finds and i == rounds:
                checked("Loop", (i + 1,), (rounds,))
            for target, row, back in zip(outputs[states:], results[states:], writes, strict=True):
                target[_at(i, trip, back)] = row
            i += 1
        if finds:
            checked("Loop", (i,), (rounds,))
        _copy(carried, outputs[:states])

    return Step(run)


def _at(i: int, trip: int, backwards: bool) -> int:
    """Return the row of iteration ``i``."""
    return trip - 1 - i if backwards else i


def _copy(results: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Copy each result to its output."""
    for target, result in zip(outputs, results, strict=True):
        np.copyto(target, result.reshape(target.shape))
