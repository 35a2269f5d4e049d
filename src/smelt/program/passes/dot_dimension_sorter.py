"""Sorts paired contracting dims if that makes them contiguous in an operand.

    before   lhs_contracting=(3, 2)  rhs_contracting=(2, 1)
    after    lhs_contracting=(2, 3)  rhs_contracting=(1, 2)

Contiguous dims in increasing order merge into one dim without a transpose. If either operand could
be sorted, but not both, the larger one is, since its transpose would cost more. The choice does not
depend on the present order, so the pass is idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Program


def run(program: Program) -> bool:
    """Sort the contracting dims of every DotGeneral; True if any changed."""
    changed = False
    for instruction in program.instructions:
        dims = instruction.attributes.get("dims")
        if instruction.op != "DotGeneral" or not isinstance(dims, DotDims):
            continue
        lhs, rhs = (program.slots[slot].shape for slot in instruction.inputs)
        key = _sort_key(dims, _weight(lhs), _weight(rhs))
        order = sorted(range(len(key)), key=key.__getitem__)
        if order == list(range(len(key))):
            continue
        lhs_sorted = tuple(dims.lhs_contracting[i] for i in order)
        rhs_sorted = tuple(dims.rhs_contracting[i] for i in order)
        dims = replace(dims, lhs_contracting=lhs_sorted, rhs_contracting=rhs_sorted)
        instruction.attributes = {**instruction.attributes, "dims": dims}
        changed = True
    return changed


def _sort_key(dims: DotDims, lhs_weight: int, rhs_weight: int) -> tuple[int, ...]:
    """Return the contracting dims of the operand to sort by; empty to leave them alone."""
    left, right = _is_contiguous(dims.lhs_contracting), _is_contiguous(dims.rhs_contracting)
    if left and (not right or lhs_weight >= rhs_weight):
        return dims.lhs_contracting
    return dims.rhs_contracting if right else ()


def _is_contiguous(dims: Sequence[int]) -> bool:
    """True if the dims are contiguous once sorted: [3, 2] is, [3, 1] is not."""
    return len(dims) > 1 and max(dims) - min(dims) == len(dims) - 1


def _weight(shape: Sequence[object]) -> int:
    """Return the number of elements, with symbolic dims counted as 1."""
    weight = 1
    for dim in shape:
        weight *= dim if isinstance(dim, int) else 1
    return weight
