"""Compute the first layers of an image network in bands of rows.

The largest tensors of such networks lie between their first convolutions. If each band of a later
result is computed from the input, only bands of the tensors between are in memory, and rows that
neighboring bands share are computed twice (``bands``).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from smelt.native.rewrite import bands
from smelt.native.rewrite.band_regions import ROW_REGIONS
from smelt.program.instruction import Instruction, Program

ROWS, RANK = 2, 4
"""The row axis of an image, and its rank."""

BANDS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
"""The numbers of bands to try, as far as there are rows."""

MOST_LAYERS = 32
"""The most first layers of a program that are tried in bands."""


def candidates(program: Program) -> Iterator[tuple[int, int, Program]]:
    """Yield variants of the program with its first layers in bands.

    Each is the number of layers, the number of bands, and the program.
    """
    for layers in beginnings(program):
        rows = program.slots[layers[-1].outputs[0]].sizes[ROWS]
        sizes = {ceil(rows / count) for count in BANDS if count <= rows}
        for size in sorted(sizes, reverse=True):
            banded = in_bands(program, layers, size)
            if banded is not None:
                yield len(layers), ceil(rows / size), banded


def beginnings(program: Program) -> Iterator[list[Instruction]]:
    """Yield lists of first layers whose last result alone is read by later instructions.

    The layers read one input of ``program``, constants and each other.
    """
    readers: dict[int, list[Instruction]] = {}
    for each in program.instructions:
        for slot in each.inputs:
            readers.setdefault(slot, []).append(each)
    for image in program.inputs:
        layers: list[Instruction] = []
        known = {image}
        for each in program.instructions:
            read = {slot for slot in each.inputs if slot >= 0 and slot not in program.constants}
            if not read or not read <= known or not _is_layer(program, each):
                continue
            layers.append(each)
            known.add(each.outputs[0])
            layer_ids = set(map(id, layers))
            read_later = [
                slot
                for slot in known - {image}
                if slot in program.outputs
                or any(id(reader) not in layer_ids for reader in readers.get(slot, ()))
            ]
            if len(layers) > 1 and read_later == list(each.outputs):
                yield list(layers)
            if len(layers) == MOST_LAYERS:
                break


def _is_layer(program: Program, instruction: Instruction) -> bool:
    """True if rows of the result depend on rows of the operands, which are images or constants."""
    if len(instruction.outputs) != 1 or instruction.bodies or instruction.parts:
        return False
    if instruction.op not in ROW_REGIONS:
        return False
    images = [slot for slot in instruction.inputs if slot >= 0 and slot not in program.constants]
    shapes = [program.slots[slot].shape for slot in (*images, *instruction.outputs)]
    known = all(isinstance(dim, int) and dim for shape in shapes for dim in shape)
    return known and all(len(shape) == RANK for shape in shapes)


def in_bands(program: Program, layers: list[Instruction], size: int) -> Program | None:
    """Return ``program`` with ``layers`` in bands of ``size`` rows of the last result, or None."""
    return bands.in_bands(program, layers, size, ROWS, ROW_REGIONS)
