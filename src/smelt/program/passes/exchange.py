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
    """Return the Reshape and the Transpose in exchanged order, in new slots; None if not possible.

    1. ``groups`` are the transposed dims that each dim of the result merges; ``sources`` are the
       same dims before the Transpose, where each group must be adjacent and in order.
    2. The new Reshape has the dims of the result in the order of their sources.
    3. The new Transpose brings them in the order of the result, and writes the slot of ``reshape``.
    """
    if transpose is None or transpose.op != "Transpose":
        return None
    perm, (source,) = transpose.ints("perm"), transpose.inputs
    source_shape = program.slots[source].shape
    result_shape = program.slots[reshape.outputs[0]].shape
    groups = _merged(program.slots[transpose.outputs[0]].shape, result_shape)
    if groups is None:
        return None
    moved_dims = [dim for dim in range(len(source_shape)) if not _is_size(source_shape[dim], 1)]
    sources = [[moved_dims.index(perm[dim]) for dim in group] for group in groups]
    if any(following != previous + 1 for run in sources for previous, following in pairwise(run)):
        return None
    order = sorted(range(len(result_shape)), key=lambda dim: (_source_near(sources, dim), dim))
    result = program.slots[reshape.outputs[0]]
    shape, name = tuple(result_shape[dim] for dim in order), f"{result.name}/reshaped"
    reshaped = program.new_slot(replace(result, shape=shape, name=name))
    new_reshape = replace(reshape, inputs=(source,), outputs=(reshaped,))
    attributes = {"perm": tuple(map(order.index, range(len(result_shape))))}
    return new_reshape, replace(
        transpose, inputs=(reshaped,), outputs=reshape.outputs, attributes=attributes, last_use=()
    )


def _source_near(sources: Sequence[list[int]], dim: int) -> list[int]:
    """Return the source dims of ``dim``, or those of the nearest other dim if ``dim`` is new.

    A new dim has size 1 and no source dims.
    """
    after = (source for source in sources[dim:] if source)
    before = (source for source in reversed(sources[:dim]) if source)
    return next(after, None) or next(before, [])


def _merged(before: Sequence[Dim], after: Sequence[Dim]) -> list[list[int]] | None:
    """Return for each size of ``after`` the dims of ``before`` whose product it is; None if they do
    not match.

    Dims of size 1 belong to no size.
    """
    remaining_dims = [dim for dim in range(len(before)) if not _is_size(before[dim], 1)]
    groups: list[list[int]] = []
    for size in after:
        group: list[int] = []
        if not _is_size(size, 1):
            if not remaining_dims:
                return None
            product = before[remaining_dims[0]]
            group.append(remaining_dims.pop(0))
            while isinstance(product, int) and isinstance(size, int) and 0 < product < size:
                following = before[remaining_dims[0]] if remaining_dims else None
                if not isinstance(following, int):
                    return None
                product *= following
                group.append(remaining_dims.pop(0))
            if not _same(product, size):
                return None
        groups.append(group)
    return None if remaining_dims else groups


def _is_size(dim: Dim, size: int) -> bool:
    """True if ``dim`` is the number ``size``."""
    return isinstance(dim, int) and dim == size


def _same(x: Dim, y: Dim) -> bool:
    """True if two dims are equal in every run."""
    symbols = isinstance(x, ir.SymbolicDim) and isinstance(y, ir.SymbolicDim)
    return same_dim(x, y) if symbols else same(x, y)
