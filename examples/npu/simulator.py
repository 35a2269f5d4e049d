"""The machine in NumPy: two memories of bytes, and the cycles of DMA and units that overlap.

It knows nothing of the compiler but the files: what is wrong in addresses or bands shows as wrong
numbers. A command begins when its engine is free and no earlier command still uses the bytes of
the scratchpad, or of DRAM, that it touches, unless both only read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from examples.npu.operators import convolved, multiplied

MACS_PER_CYCLE = {"conv": 64, "matmul": 32}
BYTES_PER_CYCLE = 8
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
        view(sram, command["to"])[...] = view(dram, command["from"])[box(command, "from")]
    elif command["do"] == "store":
        view(dram, command["to"])[box(command, "to")] = view(sram, command["from"])
    else:
        operands = [view(sram, command[name]) for name in ("x", "w", "bias")]
        compute = convolved if command["do"] == "conv" else multiplied
        view(sram, command["y"])[...] = compute(operands, command["with"])[0]


def box(command: Mapping[str, Any], side: str) -> tuple[slice, ...]:
    """The part of the tensor in DRAM that a copy is of."""
    found = [slice(None)] * len(command[side]["shape"])
    bounds = (command.get(name, ()) for name in ("axes", "starts", "stops"))
    for axis, start, stop in zip(*bounds, strict=True):
        found[axis] = slice(start, stop)
    return tuple(found)


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
    """Cycles of a command: bytes over the bus, or products over the unit."""
    if command["do"] in ("load", "store"):
        near = command["to" if command["do"] == "load" else "from"]
        size = prod(near["shape"]) * np.dtype(near["type"]).itemsize
        return -(-size // BYTES_PER_CYCLE)
    each = prod(command["w"]["shape"][1:]) if command["do"] == "conv" else command["w"]["shape"][0]
    return -(-prod(command["y"]["shape"]) * each // MACS_PER_CYCLE[command["do"]])
