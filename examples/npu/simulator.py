"""The machine in NumPy: two memories of bytes, and the cycles of DMA and units that overlap.

It knows nothing of the compiler but the files: what is wrong in addresses or bands shows as wrong
numbers. A command begins when its engine is free and no earlier command still uses the bytes of
the scratchpad, or of DRAM, that it touches, unless both only read.

Images are ``[N, H, W, C / 16, 16]``, rows ``[M, K / 16, 16]``, weights of convolutions
``[M / 4, kH, kW, C / 16, 4, 16]`` and of products ``[N / 2, K / 16, 2, 16]``: in each cycle a unit
takes one pair of innermost blocks, whether they are full or padded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from examples.npu.operators import convolved, multiplied

BYTES_PER_CYCLE = 8
RUN = 2
"""Cycles for each run of neighbouring bytes that a copy is of."""
START = 16
"""Cycles that a command takes beyond its work."""

Use = tuple[str, int, int, bool]
"""Bytes that a command uses: memory, begin, end, and whether it writes."""


class Machine:
    """Loaded with the files of an artifact; calls take and return arrays."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.commands = [json.loads(line) for line in files["commands.jsonl"].splitlines()]
        self.layout = json.loads(files["layout.json"])
        self.image = files["constants.bin"]
        self.cycles = cycles(self.commands)

    def __call__(self, *inputs: np.ndarray) -> tuple[np.ndarray, ...]:
        memories = {
            "dram": np.frombuffer(bytearray(self.image), np.uint8),
            "sram": np.zeros(self.layout["sram_bytes"], np.uint8),
        }
        for tensor, array in zip(self.layout["inputs"], inputs, strict=True):
            view(memories["dram"], tensor)[...] = array
        for command in self.commands:
            run(command, memories)
        return tuple(view(memories["dram"], t).copy() for t in self.layout["outputs"])


def view(memory: np.ndarray, tensor: Mapping[str, Any]) -> np.ndarray:
    """The tensor in its bytes."""
    dtype = np.dtype(tensor["type"])
    size = prod(tensor["shape"]) * dtype.itemsize
    return memory[tensor["at"] : tensor["at"] + size].view(dtype).reshape(tensor["shape"])


def run(command: Mapping[str, Any], memories: Mapping[str, np.ndarray]) -> None:
    """Execute one command on the bytes."""
    sram, dram = memories["sram"], memories["dram"]
    if command["do"] == "load":
        view(sram, command["to"])[...] = view(dram, command["from"])[box(command)]
    elif command["do"] == "store":
        view(dram, command["to"])[box(command)] = view(sram, command["from"])
    else:
        operands = [view(sram, command[name]) for name in ("x", "w", "bias")]
        unit = conv if command["do"] == "conv" else matmul
        view(sram, command["y"])[...] = unit(*operands, command["with"])


def conv(x: np.ndarray, w: np.ndarray, bias: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray:
    """Images by filters, as they lie in the scratchpad; the padding of the result is zero."""
    image = x.reshape(*x.shape[:3], -1).transpose(0, 3, 1, 2)
    filters = w.transpose(0, 4, 3, 5, 1, 2).reshape(-1, image.shape[1], *w.shape[1:3])
    (y,) = convolved((image, filters[: bias.size], bias), settings)
    return blocks(y.transpose(0, 2, 3, 1))


def matmul(
    x: np.ndarray, w: np.ndarray, bias: np.ndarray, settings: Mapping[str, Any]
) -> np.ndarray:
    """Rows by columns, likewise."""
    columns = w.transpose(0, 2, 1, 3).reshape(-1, x.shape[1] * 16)[: bias.size]
    return blocks(multiplied((x.reshape(len(x), -1), columns.T, bias), settings)[0])


def blocks(y: np.ndarray) -> np.ndarray:
    """The last dim in blocks of 16, padded with zeros."""
    padded = np.pad(y, [*[(0, 0)] * (y.ndim - 1), (0, -y.shape[-1] % 16)])
    return padded.reshape(*y.shape[:-1], -1, 16)


def box(command: Mapping[str, Any]) -> tuple[slice, ...]:
    """The part of the tensor in DRAM that a copy is of."""
    return tuple(slice(start, stop) for start, stop in command["box"])


def cycles(commands: list[dict[str, Any]]) -> int:
    """When the last command is done."""
    free = {"dma": 0, "conv": 0, "matmul": 0}
    done: list[tuple[list[Use], int]] = []
    for command in commands:
        engine = "dma" if command["do"] in ("load", "store") else command["do"]
        uses = uses_of(command)
        waits = (end for others, end in done if any(clash(a, b) for a in uses for b in others))
        begin = max(free[engine], *waits, 0)
        free[engine] = begin + START + work(command)
        done = [(others, end) for others, end in done if end > min(free.values())]
        done.append((uses, free[engine]))
    return max(free.values())


def clash(a: Use, b: Use) -> bool:
    """True if one writes what the other uses."""
    return a[0] == b[0] and (a[3] or b[3]) and a[1] < b[2] and b[1] < a[2]


def uses_of(command: Mapping[str, Any]) -> list[Use]:
    """The bytes of each tensor of a command."""
    sides = {"load": ("dram", "sram"), "store": ("sram", "dram")}.get(command["do"])
    if sides is not None:
        return [_use(sides[0], command["from"], False), _use(sides[1], command["to"], True)]
    read = [_use("sram", command[name], False) for name in ("x", "w", "bias")]
    return [*read, _use("sram", command["y"], True)]


def _use(memory: str, tensor: Mapping[str, Any], writes: bool) -> Use:
    size = prod(tensor["shape"]) * np.dtype(tensor["type"]).itemsize
    return memory, tensor["at"], tensor["at"] + size, writes


def work(command: Mapping[str, Any]) -> int:
    """Cycles of a command: bytes over the bus, or pairs of blocks through the unit."""
    if command["do"] in ("load", "store"):
        far, near = command["from"], command["to"]
        far, near = (far, near) if command["do"] == "load" else (near, far)
        size = prod(near["shape"]) * np.dtype(near["type"]).itemsize
        return -(-size // BYTES_PER_CYCLE) + RUN * runs(far["shape"], command["box"])
    places = prod(command["y"]["shape"][:-2])
    return places * prod(command["w"]["shape"][:-2])


def runs(shape: Sequence[int], bounds: Sequence[Sequence[int]]) -> int:
    """How many runs of neighbours a box of a tensor consists of."""
    found = 1
    for i, (size, (start, stop)) in enumerate(zip(shape, bounds, strict=True)):
        if stop - start < size:
            found = prod(last - first for first, last in bounds[:i])
    return found
