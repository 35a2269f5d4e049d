"""Replace a Reshape into a stack of parts, and a Gather of each part, by one Split.

    before   Reshape(x: ..,3*E to ..,3,E) ─> Gather(0), Gather(1), Gather(2) ─> q, k, v
    after    Split(x, E, E, E) ─> q, k, v

    before   Reshape(x: ..,3*H*D to ..,3,H,D) ─> Gather(0), Gather(1), Gather(2) ─> q, k, v
    after    Split(x, H*D, H*D, H*D) ─> Reshape to ..,H,D each ─> q, k, v

PyTorch's ``nn.MultiheadAttention`` and models with one matrix for queries, keys and values are
exported in this form. ONNX Runtime's fusion of this name keeps the Reshape and adds a Squeeze for
each part.

Needs    (1) one constant dim, split into constant dims, the first of which counts the parts; parts
         of several dims must be the last dims; (2) one constant, valid index for each Gather;
         (3) at least two parts that are read.
Keeps    (1) a stack that is an output or has other readers.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.constants import Constants
from smelt.ir.known_forms import is_known
from smelt.ir.rewrite import Rewriter
from smelt.ir.same_shape import same_dim
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass


@dataclass(frozen=True)
class _Stack:
    """``node``, a Reshape that splits dim ``axis`` into ``count`` parts of dims ``part``."""

    node: ir.Node
    axis: int
    count: int
    part: tuple[int, ...]
    picks: dict[ir.Node, int]
    """Each Gather with the number of its part."""


@graph_pass(
    "gather_to_split_fusion",
    __doc__,
    exactness=EXACT,
    source="ONNX Runtime: GatherToSplitFusion",
)
def gather_to_split_fusion(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace every stack of parts by a Split."""
    for node in cx.index().nodes([("", "Reshape")]):
        if rewriter.exhausted:
            break
        stack = _stack(node, cx.constants)
        if stack is not None:
            _split(stack, rewriter)
            stats.fired["stack of parts"] += 1


def _stack(node: ir.Node, constants: Constants) -> _Stack | None:
    """Return ``node`` as a _Stack if each of its readers gathers one part, else None."""
    stacked, readers = node.outputs[0], scope.consumers(node.outputs[0])
    if stacked.is_graph_output() or stacked.shape is None or not is_known(node):  # keeps 1
        return None
    rank = len(stacked.shape)
    picks: dict[ir.Node, int] = {}
    axes = set()
    for reader in readers:
        index = _index(reader, stacked, constants) if reader.graph is node.graph else None
        if index is None:  # keeps 1, needs 2
            return None
        axes.add(reader.attributes.get_int("axis", 0) % rank)
        picks[reader] = index
    if len(axes) != 1:
        return None
    axis = axes.pop()
    part = _dims_of_part(node, axis)
    count = stacked.shape[axis]
    if part is None or not isinstance(count, int):  # needs 1
        return None
    if not all(-count <= index < count for index in picks.values()):  # needs 2
        return None
    picks = {reader: index % count for reader, index in picks.items()}
    return _Stack(node, axis, count, part, picks) if len({*picks.values()}) > 1 else None  # needs 3


def _index(reader: ir.Node, stacked: ir.Value, constants: Constants) -> int | None:
    """Return the constant index at which ``reader`` gathers from ``stacked``, else None."""
    if (reader.domain, reader.op_type) != ("", "Gather") or not is_known(reader):
        return None
    if reader.inputs[0] is not stacked or reader.inputs[1] is None:
        return None
    index = constants.get(reader.inputs[1])
    return int(index) if index is not None and index.ndim == 0 else None


def _dims_of_part(node: ir.Node, axis: int) -> tuple[int, ...] | None:
    """Return the dims of one part if ``node`` splits only the dim at ``axis``, else None.

    Parts of several dims must be the last dims of the result.
    """
    source, stacked = node.inputs[0], node.outputs[0].shape
    if source is None or source.shape is None or stacked is None:
        return None
    before, after = source.shape.dims, stacked.dims
    added = len(after) - len(before)
    if added < 1 or axis + added >= len(after) or (added > 1 and axis + added + 1 < len(after)):
        return None
    other_dims = [*zip(before[:axis], after[:axis], strict=True)]
    other_dims += zip(before[axis + 1 :], after[axis + added + 1 :], strict=True)
    if not all(same_dim(dim_before, dim_after) for dim_before, dim_after in other_dims):
        return None
    group = [dim for dim in after[axis : axis + added + 1] if isinstance(dim, int)]
    if len(group) <= added or before[axis] != prod(group) or 0 in group:
        return None
    return tuple(group[1:])


def _split(stack: _Stack, rewriter: Rewriter) -> None:
    """Build the Split; its parts replace the Gathers, reshaped if they have several dims."""
    node = stack.node
    b = rewriter.builder(node, [node, *stack.picks], "gather_to_split_fusion")
    sizes = b.const_i64([prod(stack.part)] * stack.count)
    parts = b.ops("Split", node.inputs[0], sizes, outputs=stack.count, axis=stack.axis)
    for reader, index in stack.picks.items():
        if rewriter.exhausted:  # the others still read the stack
            break
        part = parts[index]
        if len(stack.part) > 1:
            part = b.op("Reshape", part, b.const_i64([0] * stack.axis + [*stack.part]))
        rewriter.replace(reader, (part,), trust_shape=True)
