"""The names that a WebAssembly module of smelt exports.

``memory``; ``run``, which returns 0 or the number of an error; and as globals, the addresses of
``weights``, ``input0``, ..., ``output0``, ... A module with open sizes has ``sizes`` and
``lengths``, which a run receives and returns; ``dims``, the dims of all inputs, then of all
outputs; and ``shapes``, which writes those of inputs from ``sizes``. ``run`` writes those of
outputs.
"""

from __future__ import annotations

RUN, SHAPES = "run", "shapes"
WEIGHTS, SIZES, LENGTHS, DIMS = "weights", "sizes", "lengths", "dims"


def exports(inputs: int, outputs: int, *, has_open_sizes: bool) -> list[str]:
    """Return the exports of a module besides its memory."""
    names = [RUN, WEIGHTS, *(f"input{i}" for i in range(inputs))]
    names += [f"output{i}" for i in range(outputs)]
    return [*names, SHAPES, SIZES, LENGTHS, DIMS] if has_open_sizes else names
