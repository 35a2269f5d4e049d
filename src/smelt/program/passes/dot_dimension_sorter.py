"""Sorts paired contracting dims if that makes them contiguous in an operand.

    before   lhs_contracting=(3, 2)  rhs_contracting=(2, 1)
    after    lhs_contracting=(2, 3)  rhs_contracting=(1, 2)

Contiguous dims in increasing order merge into one dim without a transpose. If either operand could
be sorted, but not both, it is the one that a canonical product then reads without a transpose, else
the larger one, since its transpose would cost more. The choice does not depend on the present
order, so the pass is idempotent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Program


def run(program: Program, *, strided: bool = False) -> bool:
    """Sort the contracting dims of every DotGeneral; True if any changed.

    With ``strided``, products read operands in any order of batch, free and contracting dims.
    """
    changed = False
    for instruction in program.instructions:
        dims = instruction.attributes.get("dims")
        if instruction.op != "DotGeneral" or not isinstance(dims, DotDims):
            continue
        lhs, rhs = (program.slots[slot].shape for slot in instruction.inputs)
        left, right = (False, False) if strided else _in_canonical_order(dims, len(lhs))
        key = _sort_key(dims, (left, _weight(lhs)), (right, _weight(rhs)))
        order = sorted(range(len(key)), key=key.__getitem__)
        if order == list(range(len(key))):
            continue
        lhs_sorted = tuple(dims.lhs_contracting[i] for i in order)
        rhs_sorted = tuple(dims.rhs_contracting[i] for i in order)
        dims = replace(dims, lhs_contracting=lhs_sorted, rhs_contracting=rhs_sorted)
        instruction.attributes = {**instruction.attributes, "dims": dims}
        changed = True
    return changed


def _in_canonical_order(dims: DotDims, lhs_rank: int) -> tuple[bool, bool]:
    """Return for each operand if its groups of dims lie as in a canonical product.

    The order of contracting dims among themselves does not count.
    """
    batch, count = tuple(range(len(dims.lhs_batch))), len(dims.lhs_contracting)
    lhs_summed = tuple(range(lhs_rank - count, lhs_rank))
    rhs_summed = tuple(range(len(batch), len(batch) + count))
    return (
        (dims.lhs_batch, tuple(sorted(dims.lhs_contracting))) == (batch, lhs_summed),
        (dims.rhs_batch, tuple(sorted(dims.rhs_contracting))) == (batch, rhs_summed),
    )


def _sort_key(
    dims: DotDims, lhs_weight: tuple[bool, int], rhs_weight: tuple[bool, int]
) -> tuple[int, ...]:
    """Return the contracting dims of the operand to sort by; empty to leave them alone.

    A weight says if the operand lies in canonical order, and its number of elements.
    """
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
