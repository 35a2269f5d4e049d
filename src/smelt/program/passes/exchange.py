"""Exchanges a Reshape of a Transpose for a Transpose of a Reshape.

    before   t = Transpose<perm=(2, 0, 1)>(a[2,3,4])   r[4,6] = Reshape(t)
    after    r[6,4] = Reshape(a)                       t[4,6] = Transpose<perm=(1, 0)>(r)

This is valid if each dim of the Reshape is one transposed dim, or merges several that are adjacent
and in the same order before the Transpose. Cases that are not proved are left alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import onnx_ir as ir

from smelt.ir.same_shape import same_dim
from smelt.program.instruction import Dim, Instruction, Program
from smelt.program.run_sizes import same


def exchanged(
    program: Program, reshape: Instruction, transpose: Instruction | None
) -> tuple[Instruction, Instruction] | None:
    """Return the two in exchanged order, in new slots; None if they cannot be exchanged.

    The Transpose, now last, writes the slot of ``reshape``.
    """
    if transpose is None or transpose.op != "Transpose":
        return None
    perm, (source,) = transpose.ints("perm"), transpose.inputs
    before = program.slots[source].shape
    after = program.slots[reshape.outputs[0]].shape
    groups = _merged(program.slots[transpose.outputs[0]].shape, after)
    if groups is None:
        return None
    walked = [dim for dim in range(len(before)) if not _is(before[dim], 1)]
    places = [[walked.index(perm[dim]) for dim in group] for group in groups]
    if any(then != here + 1 for run in places for here, then in pairwise(run)):
        return None
    order = sorted(range(len(after)), key=lambda dim: (_beside(places, dim), dim))
    result = program.slots[reshape.outputs[0]]
    shape, name = tuple(after[dim] for dim in order), f"{result.name}/reshaped"
    made = program.new_slot(replace(result, shape=shape, name=name))
    first = replace(reshape, inputs=(source,), outputs=(made,))
    turned = {"perm": tuple(map(order.index, range(len(after))))}
    return first, replace(
        transpose, inputs=(made,), outputs=reshape.outputs, attributes=turned, last_use=()
    )


def _beside(places: Sequence[list[int]], dim: int) -> list[int]:
    """Return the source of ``dim``; a new dim of size 1 takes that of the next dim with a
    source."""
    following = (place for place in places[dim:] if place)
    ahead = (place for place in reversed(places[:dim]) if place)
    return next(following, None) or next(ahead, [])


def _merged(before: Sequence[Dim], after: Sequence[Dim]) -> list[list[int]] | None:
    """Return the dims of ``before`` whose product is each of ``after``, without dims of size 1."""
    left = [dim for dim in range(len(before)) if not _is(before[dim], 1)]
    groups: list[list[int]] = []
    for size in after:
        group: list[int] = []
        if not _is(size, 1):
            if not left:
                return None
            product = before[left[0]]
            group.append(left.pop(0))
            while isinstance(product, int) and isinstance(size, int) and 0 < product < size:
                following = before[left[0]] if left else None
                if not isinstance(following, int):
                    return None
                product *= following
                group.append(left.pop(0))
            if not _same(product, size):
                return None
        groups.append(group)
    return None if left else groups


def _is(dim: Dim, size: int) -> bool:
    return isinstance(dim, int) and dim == size


def _same(x: Dim, y: Dim) -> bool:
    symbols = isinstance(x, ir.SymbolicDim) and isinstance(y, ir.SymbolicDim)
    return same_dim(x, y) if symbols else same(x, y)
