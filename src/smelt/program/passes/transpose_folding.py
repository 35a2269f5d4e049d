"""Folds a Transpose into the DotGeneral that reads it, by renumbering the dims.

    before   t = Transpose<perm=(1, 0)>(a)   y = DotGeneral<lhs_contracting=(1,)>(t, b)
    after    t = Transpose<perm=(1, 0)>(a)   y = DotGeneral<lhs_contracting=(0,)>(a, b)

Contracting and batch dims are paired lists, so they may move freely. Free dims come out in
increasing order, so the fold is valid only if the permutation keeps their order; otherwise the
result would be permuted, which equal sizes would hide. Such a Transpose stays.

On request, a Reshape between the two is moved before the Transpose if the dims that it merges are
adjacent there too: it is a view, and the Transpose is then folded.

Dead code elimination removes the Transpose unless something else reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Instruction, Program
from smelt.program.passes.exchange import exchanged

Producers = dict[int, Instruction]
Accepts: TypeAlias = Callable[[DotDims, int, Sequence[int]], bool]
"""True if a Transpose may be folded: the dims of the product, the side, the permutation."""


def run(
    program: Program, *, across_reshapes: bool = False, accepts: Accepts = lambda *_: True
) -> bool:
    """Fold every chain of Transposes as far as possible; True if any was folded.

    ``across_reshapes`` is for programs whose products are not made canonical by Reshapes
    afterwards. Only Transposes that ``accepts`` are folded.
    """
    producers: Producers = {}
    before, program.instructions = program.instructions, []
    changed = False
    for instruction in before:
        if instruction.op == "DotGeneral":
            for side in (0, 1):
                while _fold(program, instruction, side, producers, across_reshapes, accepts):
                    changed = True
        program.instructions.append(instruction)
        for slot in instruction.outputs:
            producers[slot] = instruction
    return changed


def _fold(
    program: Program,
    dot: Instruction,
    side: int,
    producers: Producers,
    across_reshapes: bool,
    accepts: Accepts,
) -> bool:
    """Fold the Transpose that operand ``side`` of ``dot`` reads; False if it cannot be folded."""
    transpose, reshape = producers.get(dot.inputs[side]), None
    if across_reshapes and transpose is not None and transpose.op == "Reshape":
        swapped = exchanged(program, transpose, producers.get(transpose.inputs[0]))
        reshape, transpose = swapped if swapped is not None else (None, None)
    dims = dot.attributes["dims"]
    if transpose is None or transpose.op != "Transpose" or not isinstance(dims, DotDims):
        return False
    source = list(transpose.ints("perm"))
    free = (dims.rhs_free if side else dims.lhs_free)(len(source))
    free_sources = [source[dim] for dim in free]
    if free_sources != sorted(free_sources) or not accepts(dims, side, source):
        return False
    if reshape is not None:
        program.instructions.append(reshape)
        producers[reshape.outputs[0]] = reshape
    dot.attributes = {**dot.attributes, "dims": _renumbered(dims, side, source)}
    (slot,) = transpose.inputs
    dot.inputs = (slot, dot.inputs[1]) if side == 0 else (dot.inputs[0], slot)
    return True


def _renumbered(dims: DotDims, side: int, source: list[int]) -> DotDims:
    """Return ``dims`` with the dims of one side before the permutation ``source``."""
    if side == 0:
        contracting = tuple(source[dim] for dim in dims.lhs_contracting)
        batch = tuple(source[dim] for dim in dims.lhs_batch)
        return replace(dims, lhs_contracting=contracting, lhs_batch=batch)
    contracting = tuple(source[dim] for dim in dims.rhs_contracting)
    batch = tuple(source[dim] for dim in dims.rhs_batch)
    return replace(dims, rhs_contracting=contracting, rhs_batch=batch)
