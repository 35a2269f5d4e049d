"""Tiling, layouts and small memories make the programs that ``staged.txt`` records.

A row, ``opset 23: graph``, is followed by its entry: for a share of the bytes that the program
needs, the counts of operators after tiling and staging, the bytes of each memory, and a digest of
all instructions with their slots and offsets; then the same of the program in layouts.
``PYTHONPATH=src:tests python tests/program/chips/test_staged.py`` writes the entries again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from lowered import lowered
from recorded import digest, made_or_refused, rows, write
from staged import SUMS

from smelt.program.chips.layouts import ANY, Layouts, LayoutsOf, with_layouts
from smelt.program.chips.memories import Memory
from smelt.program.chips.staging import plan_staged
from smelt.program.chips.tile_search import misfit, tile_to_fit
from smelt.program.instruction import Instruction, Program
from smelt.program.layout import Layout

TABLE = Path(__file__).with_name("staged.txt")

DRAM, WEIGHTS = Memory("dram"), "weights"
BLOCKED = Layout("NCHW", "NCHW4c")
LAYOUTS: Mapping[str, LayoutsOf] = {
    "Conv": Layouts((Layout("NCHW", "NHWC"), Layout("OIHW", "HWIO4o")), (Layout("NCHW", "NHWC"),)),
    "MaxPool": Layouts((BLOCKED,), (BLOCKED,)),
    **dict.fromkeys(("Relu", "Add", "Mul", "Neg", "Map"), ANY),
}


def entry(row: str) -> str:
    """Return the entry of a row."""
    ways = (
        partial(staged, share=0.6, double_buffer=True),
        partial(staged, share=0.3, axes=(1, 2, 0, 3)),
        partial(staged, share=0.4, place=_second_apart),
        partial(staged, share=0.3, sums=SUMS),
        lambda program: _told(with_layouts(program, LAYOUTS)),
    )
    opset, _, graph = row.partition(": ")
    number = int(opset.removeprefix("opset "))
    return " | ".join(
        made_or_refused(lambda way=way: way(lowered(f"g {graph}", number))) for way in ways
    )


def staged(program: Program, share: float, double_buffer: bool = False, **options: object) -> str:
    """Return the record of ``program`` in memories of this share of the largest instruction."""
    most = max(
        sum(program.slots[slot].nbytes for slot in (*each.inputs, *each.outputs) if slot >= 0)
        for each in program.instructions
    )
    bytes_, place = int(most * share), options.pop("place", None)
    where = {} if place is None else {"place": place}
    budget = bytes_ if place is None else {"near": bytes_, WEIGHTS: bytes_}
    why = misfit(program, budget, align=4, **options, **where)
    tiled = tile_to_fit(program, budget, align=4, **options, **where)
    near = [Memory("near", most, 16)] + [Memory(WEIGHTS, most, 16)] * (place is not None)
    plan = plan_staged(tiled, DRAM, near, double_buffer=double_buffer, **where)
    offsets = [(each.space, each.size, plan.offsets[id(each)]) for each in plan.assignment.arena]
    return f"{_told(plan.program)} {digest(str(sorted(offsets)), why)}"


def _second_apart(instruction: Instruction, operand: int | None) -> str:
    """Return the memory of weights for second operands, and the other memory for everything else."""
    return WEIGHTS if operand == 1 else "near"


def _told(program: Program) -> str:
    """Return the counts of operators and a digest of all instructions with their slots."""
    counts = Counter(each.op for each in program.instructions)
    listed = " ".join(f"{count}*{op}" for op, count in counts.items())
    return f"{listed} {digest(*_lines(program))}"


def _lines(program: Program) -> Iterator[str]:
    """Yield a line for each instruction and for each slot."""
    for each in program.instructions:
        yield f"{each.op} {each.inputs} {each.outputs} {dict(each.attributes)} {each.last_use}"
    for slot in program.slots:
        yield f"{slot.shape} {slot.dtype} {slot.space} {slot.layout}"


@pytest.mark.parametrize(("row", "expected"), rows(TABLE), ids=lambda line: line[:60])
def test_the_program_is_what_the_table_records(row: str, expected: str) -> None:
    assert entry(row) == expected, "if this is meant: python tests/program/chips/test_staged.py"


if __name__ == "__main__":
    write(TABLE, entry)
