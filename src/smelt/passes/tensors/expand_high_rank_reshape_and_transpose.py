"""Limit the rank between Reshape, Transpose and Reshape: ``{max_rank=5}``.

    before   x ─> Reshape (rank 6 or more) ─> Transpose ─> Reshape ─> y
    after    x ─> Reshape ─> Transpose ─> Reshape ─> y, of fewer axes

Axes of size 1 are dropped, and axes that stay neighbours are merged. If that is not enough, the
permutation is split into steps that swap two neighbouring blocks, each a Transpose of rank 4.

    before   x ─> Gather(indices: [4, 2]) (rank 6 or more) ─> y
    after    x ─> Gather(indices: [8]) ─> Reshape (rank 6 or more) ─> y

Such a Reshape may begin a chain of the first form; windows of images are gathered that way.

Needs    (1) a limit of at least 4, a result within the limit, and at most one unknown dim; (2) for
         a Gather, constant indices, and a rank within the limit without their further axes.
Keeps    (1) chains within the limit; (2) inner results with other readers; (3) sizes of 0.
         The pass is for targets with such a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import onnx_ir as ir

from smelt.errors import UsageError
from smelt.ir.build import Builder
from smelt.ir.opset import RESHAPES
from smelt.ir.pattern import const, op, var
from smelt.ir.rule import Match, Miss, Replacement, rule
from smelt.ir.same_shape import Dim
from smelt.ir.symbolic_dims.element_counts import dim_product
from smelt.passes.base import EXACT, rule_pass
from smelt.passes.layout.merge_consecutive_transposes import permutation
from smelt.passes.tensors.stack import dims_of


@dataclass(frozen=True)
class RankLimit:
    """``max_rank``: the highest rank that the target supports."""

    max_rank: int = 5

    def __post_init__(self) -> None:
        if self.max_rank < 4:
            raise UsageError(
                "E603",
                f"expand-high-rank-reshape-and-transpose cannot take max_rank={self.max_rank}",
                why="its steps are Transposes of rank 4",
                fix="give a max_rank of 4 or more",
            )


_first = op(sorted(RESHAPES), var("x"), rest=True, name="split")


# keeps 2
@rule(op(sorted(RESHAPES), op("Transpose", _first, name="moved"), rest=True), same_shape=True)
def high_rank_transpose(m: Match, b: Builder) -> Replacement:
    """Replace the chain by Reshapes and Transposes of at most ``max_rank`` axes."""
    limit = m.options.max_rank
    dims, result = dims_of(m["split"]), dims_of(m.root.outputs[0])
    perm = permutation(m.node("moved"))
    if dims is None or perm is None or len(dims) <= limit:  # keeps 1
        return None
    if result is None:
        return Miss("the rank of the result is unknown")
    if len(result) > limit:  # needs 1
        return Miss("the rank of the result is above the limit")
    sizes, order = _merged_axes(dims, perm)
    if len(_unknown_dims(sizes)) > 1 or len(_unknown_dims(result)) > 1:
        return Miss("more than one dim of the operand or of the result is not known")
    if 0 in sizes or 0 in result:  # keeps 3
        return Miss("a dim of the operand or of the result is 0")
    value = m["x"]
    steps = [(sizes, order)] if len(sizes) <= limit else _swaps(sizes, order)
    for shape, moves in steps:
        if moves != sorted(moves):
            value = _reshape(b, value, shape)
            value = b.op("Transpose", value, perm=moves)
    return _reshape(b, value, result)


@rule(op("Gather", var("x"), const(name="indices", limit=None)), same_shape=True)  # needs 2
def high_rank_gather(m: Match, b: Builder) -> Replacement:
    """Gather by a vector of indices, then split the axis of the indices by a Reshape."""
    result, indices = dims_of(m.root.outputs[0]), m.array("indices", limit=None)
    if result is None or indices is None or len(result) <= m.options.max_rank:  # keeps 1
        return None
    if indices.ndim < 2 or len(result) - indices.ndim + 1 > m.options.max_rank:  # needs 2
        return Miss("a vector of indices does not bring the rank within the limit")
    if len(_unknown_dims(result)) > 1 or 0 in result:  # needs 1, keeps 3
        return Miss("more than one dim of the result is not known, or one is 0")
    axis = m.root.attributes.get_int("axis", 0)
    rows = b.op("Gather", m["x"], b.constant(indices.reshape(-1)), axis=axis)
    return _reshape(b, rows, result)


def _merged_axes(dims: Sequence[Dim], perm: Sequence[int]) -> tuple[list[Dim], list[int]]:
    """Return ``(sizes, order)``: the permutation ``perm`` of ``dims``, stated over fewer axes.

    Axes of size 1 are dropped; axes that stay neighbours in the same order are merged.
    """
    segments: list[list[int]] = []
    long_axes = [axis for axis, dim in enumerate(dims) if dim != 1]
    position = {axis: index for index, axis in enumerate(long_axes)}
    for axis in perm:
        if axis not in position:
            continue
        if segments and position[axis] == position[segments[-1][-1]] + 1:
            segments[-1].append(axis)
        else:
            segments.append([axis])
    before_perm = sorted(segments)
    sizes = [dim_product([dims[axis] for axis in segment]) for segment in before_perm]
    return sizes, [before_perm.index(segment) for segment in segments]


def _swaps(sizes: list[Dim], order: list[int]) -> Iterator[tuple[list[Dim], list[int]]]:
    """Yield ``(shape, perm)`` of rank-4 Transposes that together bring axes into ``order``.

    Each step swaps two neighbouring blocks, and so brings one more run of axes to its final
    position: from 0 1 2 3 to 2 3 0 1 is one step, with the blocks (), (0, 1), (2, 3), ().
    """
    current = list(range(len(sizes)))
    for start in range(len(order)):
        if current[start] == order[start]:
            continue
        begin = end = current.index(order[start])
        while end < len(current) and current[end] == order[start + end - begin]:
            end += 1
        cuts = (0, start, begin, end, len(current))
        blocks = [current[block_start:block_end] for block_start, block_end in pairwise(cuts)]
        yield [dim_product([sizes[axis] for axis in block]) for block in blocks], [0, 2, 1, 3]
        current = [*blocks[0], *blocks[2], *blocks[1], *blocks[3]]


def _unknown_dims(dims: Sequence[Dim]) -> list[Dim]:
    """Return the dims of ``dims`` that are not numbers."""
    return [dim for dim in dims if not isinstance(dim, int)]


def _reshape(b: Builder, value: ir.Value, dims: Sequence[Dim]) -> ir.Value:
    """Return ``value`` reshaped to ``dims``, of which at most one is unknown."""
    return b.op("Reshape", value, b.const_i64([d if isinstance(d, int) else -1 for d in dims]))


expand_high_rank_reshape_and_transpose = rule_pass(
    "expand_high_rank_reshape_and_transpose",
    __doc__,
    [high_rank_transpose, high_rank_gather],
    exactness=EXACT,
    default=False,
    options_type=RankLimit,
    source="Core ML MIL: common::expand_high_rank_reshape_and_transpose",
)
