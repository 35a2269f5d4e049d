"""If and Loop, whose bodies are functions of this process that are bound once."""

from __future__ import annotations

import math
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
    """Return the step of a Loop or Scan, whose states pass from iteration to iteration.

    The attributes ``reads`` and ``writes`` tell, for each scan input and output, whether it runs
    backwards; ``counted``, whether the body takes the iteration number and the condition. With
    ``finds``, the number of iterations depends on data; it must equal the size that the first
    scan output was planned with, ``declared_count``.
    """
    (body,) = call.bodies
    state_count, inputs = call.integer("states"), len(call.inputs)
    reads, writes = (tuple(map(bool, call.ints(name))) for name in ("reads", "writes"))
    counted = bool(call.attributes["counted"])
    trip, counts_iterations = call.integer("trip"), bool(call.attributes["finds"])
    declared_count = call.outputs[state_count].shape[0] if counts_iterations else 0
    if trip < 0 and reads:
        trip = call.input(2 + state_count).shape[0]

    def run(*arrays: Array) -> None:
        """Run the iterations, then copy the last states."""
        limit, condition, *states_and_rows = arrays[:inputs]
        outputs = arrays[inputs:]
        rows_begin, captured_begin = state_count, state_count + len(reads)
        states = states_and_rows[:rows_begin]
        rows, captured = (
            states_and_rows[rows_begin:captured_begin],
            states_and_rows[captured_begin:],
        )
        max_iterations = _most_iterations(trip, limit)
        goes_on = condition is None or bool(condition.all())
        i = 0
        while goes_on and i < max_iterations:
            operands = [row[_at(i, trip, back)] for row, back in zip(rows, reads, strict=True)]
            if counted:
                head = (np.array(i, np.int64), np.array(goes_on))
                next_condition, *results = body(*head, *states, *operands, *captured)
                goes_on = bool(next_condition.all())
            else:
                results = list(body(*states, *operands, *captured))
            states = results[:state_count]
            if counts_iterations and i == declared_count:
                checked("Loop", (i + 1,), (declared_count,))
            _store_rows(outputs[state_count:], results[state_count:], writes, i, trip)
            i += 1
        if counts_iterations:
            checked("Loop", (i,), (declared_count,))
        _copy(states, outputs[:state_count])

    return Step(run)


def _most_iterations(trip: int, limit: Array | None) -> float:
    """Return the largest number of iterations.

    It is ``trip``, or if that is -1 the operand ``limit``, or infinity without that operand.
    """
    if trip >= 0:
        return trip
    return math.inf if limit is None else int(limit.reshape(()))


def _store_rows(
    outputs: Sequence[Array], rows: Sequence[Array], backwards: Sequence[bool], i: int, trip: int
) -> None:
    """Store the rows of iteration ``i`` in the scan outputs."""
    for output, row, is_backwards in zip(outputs, rows, backwards, strict=True):
        output[_at(i, trip, is_backwards)] = row


def _at(i: int, trip: int, backwards: bool) -> int:
    """Return the row that iteration ``i`` of ``trip`` reads: from the end if ``backwards``."""
    return trip - 1 - i if backwards else i


def _copy(results: Sequence[Array], outputs: Sequence[Array]) -> None:
    """Copy each result to its output."""
    for target, result in zip(outputs, results, strict=True):
        np.copyto(target, result.reshape(target.shape))
