"""Find how many tokens a decoder has room for: in its caches, and in its table of positions.

A cache of fixed size that is written at a position, such as that of a JAX step, keeps its shape,
as the state of a recurrent layer does. Two tokens tell them apart: rows 0 and 1 along one axis are
written, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from smelt.decoding.program import Program
from smelt.decoding.state import Array, State
from smelt.errors import UsageError


def room_of(
    program: Program, batch: int, constants: Mapping[str, Array], *, may_run: bool
) -> int | None:
    """Return the most tokens that caches and positions of ``program`` allow, None for any number.

    ``program`` takes one token a call. It is run twice if it has caches of fixed size and
    ``may_run``: no other program has to compute pasts for it.
    """
    ports = program.network.ports
    if ports.positions is None:
        return None
    rows = program.network.positions
    fixed = [cache.input for cache in ports.caches if cache.kind == "replaced"]
    if not fixed or not may_run:
        return rows
    state = State(2, np.ones((batch, 2), bool))
    written: list[dict[str, list[set[int]]]] = []
    for _ in range(2):
        program.run(np.zeros((batch, 1), np.int64), state, constants)
        written.append({name: _written(state.caches[name]) for name in fixed})
    rooms = [
        state.caches[name].shape[axis]
        for name in fixed
        for axis, places in enumerate(written[1][name])
        if axis and places == {0, 1} and written[0][name][axis] == {0}
    ]
    return min(rooms if rows is None else [*rooms, rows], default=None)


def _written(array: Array) -> list[set[int]]:
    """Return, for each axis of ``array``, the indices with numbers other than 0."""
    return [set(map(int, places)) for places in np.nonzero(array)]


def refuse_small_cache(room: int, width: int, count: int) -> None:
    """Raise UsageError E806 if ``count`` tokens after ``width`` need more than ``room`` tokens."""
    needed = width + count - 1  # the last token is not read again
    if needed <= room:
        return
    possible = room - width + 1
    fix = "export the decoder with larger caches and more positions"
    if possible > 0:
        fix = f"{fix}, or ask for {possible} tokens at most: --tokens {possible}"
    raise UsageError(
        "E806",
        f"the decoder has room for {room} tokens",
        why=f"the prompt has {width}, and {count} are asked for; the last one is not read again",
        fix=fix,
    )
