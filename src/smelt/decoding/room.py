"""Find how many tokens the caches of a decoder have room for.

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


def room_of(program: Program, batch: int, constants: Mapping[str, Array]) -> int | None:
    """Return the most tokens that all caches of ``program`` hold, None if they may be any number.

    ``program`` takes one token a call. It is run twice.
    """
    ports = program.network.ports
    fixed = [cache.input for cache in ports.caches if cache.kind == "replaced"]
    if ports.positions is None or not fixed:
        return None
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
    return min(rooms, default=None)


def _written(array: Array) -> list[set[int]]:
    """Return, for each axis of ``array``, the indices with numbers other than 0."""
    return [set(map(int, places)) for places in np.nonzero(array)]


def refuse_small_cache(room: int, width: int, count: int) -> None:
    """Raise UsageError E806 if ``count`` tokens after ``width`` need more than ``room`` tokens."""
    needed = width + count - 1  # the last token is not read again
    if needed <= room:
        return
    possible = room - width + 1
    fix = "export the decoder with larger caches"
    if possible > 0:
        fix = f"{fix}, or ask for {possible} tokens at most: --tokens {possible}"
    raise UsageError(
        "E806",
        f"the caches have room for {room} tokens",
        why=f"the prompt has {width}, and {count} are asked for; the last one is not stored",
        fix=fix,
    )
