"""The pipeline ``exec``: sort, fold, decompose, eliminate, last uses, for column-major engines.

Such an engine stores matrices column by column: the first dim of an array is contiguous. So batch
dims come last in the operands of a product:

    canonical   [M?, K, B...] x [K, N?, B...]

M is the product of the free dims of the left operand, N that of the right one, and K that of the
contracting dims; B are the batch dims. A dim with "?" is left out if there are no free dims. The
result of a DotGeneral has its batch dims first, as in the rest of a Program. The default pipeline
has another order and another canonical form; ``docs/program.md`` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from smelt.program.dot_dims import DotDims
from smelt.program.instruction import Dim, Program
from smelt.program.passes import dead_code_elimination, last_use, transpose_folding
from smelt.program.passes.dot_decomposer import DotRewriter, product_of


def run(program: Program) -> Program:
    """Run the passes of ``STEPS`` over ``program`` in place, and return it."""
    for body in program.bodies:
        run(body.program)
    for step in STEPS.values():
        step(program)
    return program


def sort_dims(program: Program) -> bool:
    """Sort the pairs of contracting dims by the dim of the lhs, or else by that of the rhs.

    The dims to sort by must be out of order, and consecutive once sorted. True if any changed.

        lhs_contracting=(2, 1), rhs_contracting=(0, 3)   =>   (1, 2), (3, 0)
    """
    changed = False
    for instruction in program.instructions:
        dims = instruction.attributes.get("dims")
        if instruction.op != "DotGeneral" or not isinstance(dims, DotDims):
            continue
        sides = (dims.lhs_contracting, dims.rhs_contracting)
        key = next((side for side in sides if _can_be_sorted(side)), None)
        if key is None:
            continue
        order = sorted(range(len(key)), key=key.__getitem__)
        lhs, rhs = (tuple(side[i] for i in order) for side in sides)
        dims = replace(dims, lhs_contracting=lhs, rhs_contracting=rhs)
        instruction.attributes = {**instruction.attributes, "dims": dims}
        changed = True
    return changed


def _can_be_sorted(dims: Sequence[int]) -> bool:
    """True if the dims are not sorted, and consecutive once sorted."""
    return list(dims) != sorted(dims) and max(dims) - min(dims) == len(dims) - 1


def fold_transposes(program: Program) -> bool:
    """Fold Transposes that keep the batch dims in place into products with one contracting dim.

    As everywhere, free dims must keep their order. True if any was folded.
    """
    return transpose_folding.run(program, accepts=_is_foldable)


def _is_foldable(dims: DotDims, side: int, source: Sequence[int]) -> bool:
    """True if the Transpose by ``source`` before operand ``side`` may be folded."""
    batch = dims.rhs_batch if side else dims.lhs_batch
    return len(dims.lhs_contracting) == 1 and all(source[dim] == dim for dim in batch)


def decompose(program: Program) -> bool:
    """Bring every DotGeneral to the canonical form of this module; True if one got a Transpose or
    a Reshape."""
    before, program.instructions = program.instructions, []
    for instruction in before:
        dims = instruction.attributes.get("dims")
        if instruction.op == "DotGeneral" and isinstance(dims, DotDims):
            _decompose(DotRewriter(program, instruction, dims))
        else:
            program.instructions.append(instruction)
    return len(program.instructions) > len(before)


def _decompose(dot: DotRewriter) -> None:
    """Emit the canonical product, with Transposes and Reshapes around it where they do something.

    A product without contracting dims gets one of size 1. For ``[B,M,K] x [B,K,N]``:

        l = Transpose<perm=(1, 2, 0)>(lhs)    r = Transpose<perm=(1, 2, 0)>(rhs)
        y = DotGeneral(l: M,K,B, r: K,N,B)
    """
    dims, (lhs, rhs), (output,) = dot.dims, dot.instruction.inputs, dot.instruction.outputs
    lhs_free, rhs_free = dot.lhs_free(), dot.rhs_free()
    left = _grouped(dot, lhs, (lhs_free, dims.lhs_contracting), dims.lhs_batch, free=0)
    right = _grouped(dot, rhs, (dims.rhs_contracting, rhs_free), dims.rhs_batch, free=1)
    m, n, batch = int(bool(lhs_free)), int(bool(rhs_free)), len(dims.lhs_batch)
    canonical = DotDims(
        (m,), (0,), tuple(range(m + 1, m + 1 + batch)), tuple(range(n + 1, n + 1 + batch))
    )
    attributes = {**dot.instruction.attributes, "dims": canonical}
    product = replace(dot.instruction, inputs=(left, right), attributes=attributes)
    if len(lhs_free) <= 1 and len(rhs_free) <= 1:
        dot.program.instructions.append(product)
        return
    left_shape, right_shape = dot.shape(left), dot.shape(right)
    shape = (*left_shape[m + 1 :], *left_shape[:m], *right_shape[1 : n + 1])
    merged = dot.new_slot(dot.dtype(output), shape, "dot")
    dot.program.instructions.append(replace(product, outputs=(merged,)))
    dot.emit("Reshape", (merged,), (output,))


def _grouped(
    dot: DotRewriter,
    slot: int,
    groups: tuple[Sequence[int], Sequence[int]],
    batch: Sequence[int],
    *,
    free: int,
) -> int:
    """Return the operand with each of the two ``groups`` of dims merged into one, then ``batch``.

    ``free`` is the index of the group of free dims, which is omitted if it is empty.
    """
    slot = dot.transposed(slot, (*groups[0], *groups[1], *batch))
    if len(groups[free]) <= 1 and len(groups[1 - free]) == 1:
        return slot
    shape, first, both = dot.shape(slot), len(groups[0]), len(groups[0]) + len(groups[1])
    parts = (shape[:first], shape[first:both])
    merged: list[Dim] = [
        product_of(part) for place, part in enumerate(parts) if part or place != free
    ]
    result = dot.new_slot(dot.dtype(slot), (*merged, *shape[both:]), "reshaped")
    dot.emit("Reshape", (slot,), (result,))
    return result


STEPS: Mapping[str, Callable[[Program], bool]] = {
    "DotDimensionSorter": sort_dims,
    "TransposeFolding": fold_transposes,
    "DotDecomposer": decompose,
    "DeadCodeElimination": dead_code_elimination.run,
    "LastUse": last_use.run,
}
"""The passes of the pipeline, in order: each edits a Program and returns whether it changed."""
