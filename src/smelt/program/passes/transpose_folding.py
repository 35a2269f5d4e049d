"""Let a DotGeneral read what a Transpose reads, by renumbering its dims.

    before   t = Transpose<perm=(1, 0)>(a)   y = DotGeneral<lhs_contracting=(1,)>(t, b)
    after    t = Transpose<perm=(1, 0)>(a)   y = DotGeneral<lhs_contracting=(0,)>(a, b)

Contracting and batch dims are paired lists, so they may move freely. Free dims come out in
increasing order, so the fold is right only if the permutation keeps their order; otherwise the
result would be permuted, which equal sizes would hide. Such a Transpose stays.
The Transpose itself goes with the dead code, unless something else reads it.
"""

from __future__ import annotations

from dataclasses import replace

from smelt.program.instruction import DotDims, Instruction, Program


def run(program: Program) -> bool:
    """Fold every chain of Transposes as far as it goes; true if any was folded."""
    producers: dict[int, Instruction] = {}
    changed = False
    for instruction in program.instructions:
        if instruction.op == "DotGeneral":
            for side in (0, 1):
                while _fold(instruction, side, producers):
                    changed = True
        for slot in instruction.outputs:
            producers[slot] = instruction
    return changed


def _fold(dot: Instruction, side: int, producers: dict[int, Instruction]) -> bool:
    producer = producers.get(dot.inputs[side])
    dims = dot.attributes["dims"]
    if producer is None or producer.op != "Transpose" or not isinstance(dims, DotDims):
        return False
    source = list(producer.ints("perm"))
    free = (dims.rhs_free if side else dims.lhs_free)(len(source))
    moved = [source[dim] for dim in free]
    if moved != sorted(moved):
        return False
    dot.attributes = {**dot.attributes, "dims": _renumbered(dims, side, source)}
    (slot,) = producer.inputs
    dot.inputs = (slot, dot.inputs[1]) if side == 0 else (dot.inputs[0], slot)
    return True


def _renumbered(dims: DotDims, side: int, source: list[int]) -> DotDims:
    if side == 0:
        contracting = tuple(source[dim] for dim in dims.lhs_contracting)
        batch = tuple(source[dim] for dim in dims.lhs_batch)
        return replace(dims, lhs_contracting=contracting, lhs_batch=batch)
    contracting = tuple(source[dim] for dim in dims.rhs_contracting)
    batch = tuple(source[dim] for dim in dims.rhs_batch)
    return replace(dims, rhs_contracting=contracting, rhs_batch=batch)
