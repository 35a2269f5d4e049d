"""Replace a roll of rows, and the moves around it, by one Gather.

    before   x: [N,H,W,C] ─> Slice, Slice ─> Concat(1) ─> Slice, Slice ─> Concat(2)
               ─> Reshape [N,H/7,7,W/7,7,C] ─> Transpose(0,1,3,2,4,5) ─> Reshape [M,49,C] ─> y
    after    x ─> Reshape [N,H*W,C] ─> Gather(places, axis = 1) ─> Reshape [M,49,C] ─> y

The shifted windows of Swin (Liu et al. 2021), made by ``torch.roll`` or ``jnp.roll``, have this
form: one copy replaces five. ONNX Runtime takes .37 to .5 of the time on maps of 14 to 112 rows,
and .53 to .65 for a single roll.

Needs    (1) a roll: a Concat of parts of one value along one axis. The chain around it may have
         Reshapes, Transposes, Slices, Gathers with constant indices and other rolls, with known
         sizes along the moved axes; (2) unmoved last dims of at least 64 bytes, or 128 bytes for a
         single move, because ONNX Runtime gathers smaller rows more slowly; (3) indices of at most
         64 KiB.
Keeps    (1) results that are outputs or have other readers: the chain ends there; (2) all nodes for
         targets with their own kernels, where a Slice costs less.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.ir import scope
from smelt.ir.build import Builder
from smelt.ir.constants import Constants
from smelt.ir.rewrite import Rewriter
from smelt.ir.worklist import RuleStats
from smelt.passes.base import EXACT, Options, PassContext, graph_pass
from smelt.passes.tensors.moves_as_indices import Chain, Move, chain_of, move_to

MOST_ROWS = 64 * 1024 // 4
"""Limit of indices, of 4 bytes each, in a constant."""

MOST_MOVES = 32
"""Limit of moves in a chain; a longer chain becomes several."""

LEAST, LEAST_ALONE = 64, 128
"""Smallest row in bytes: in a chain of several copies, and in a chain of one."""


@graph_pass("gather_moved_rows", __doc__, exactness=EXACT, after=("fuse_attention",))
def gather_moved_rows(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
    """Replace the longest chain around each roll by a Gather."""
    if cx.kernels is not None:  # keeps 2
        return
    seen: set[ir.Node] = set()
    for concat in list(cx.index().nodes([("", "Concat")])):
        if concat in seen or rewriter.exhausted:
            continue
        chain = _chain(concat, cx.constants)
        if chain is None:
            continue
        seen.update(node for move in chain.moves for node in move.nodes)
        nodes = [node for move in chain.moves for node in move.nodes]
        b = rewriter.builder(nodes[-1], nodes, "gather_moved_rows")
        rewriter.replace(nodes[-1], [_gathered(chain, b)], trust_shape=True)
        stats.fired["rows gathered"] += 1


def _chain(concat: ir.Node, constants: Constants) -> Chain | None:
    """Return the longest chain of moves around the roll ``concat``; None if no Gather is faster.

    The chain grows by one move at a time, first towards the source, then towards the result.
    """
    roll = move_to(concat.outputs[0], constants)
    if roll is None or not _is_closed(roll):  # needs 1
        return None
    moves = [roll]
    while len(moves) < MOST_MOVES:
        previous = move_to(moves[0].source, constants)
        if (
            previous is None
            or not _is_only_reader(previous, moves[0])
            or not _worthwhile_chain([previous, *moves])
        ):
            break
        moves.insert(0, previous)
    while len(moves) < MOST_MOVES:
        following = _move_from(moves[-1].result, constants)
        if (
            following is None
            or not _is_only_reader(moves[-1], following)
            or not _worthwhile_chain([*moves, following])
        ):
            break
        moves.append(following)
    chain = _worthwhile_chain(_without_end_reshapes(moves))
    if chain is None:
        return None
    has_one_copy = sum(move.copies for move in moves) == 1
    return None if has_one_copy and chain.row_bytes < LEAST_ALONE else chain


def _worthwhile_chain(moves: list[Move]) -> Chain | None:
    """Return ``moves`` as a chain if its indices and rows have suitable sizes, else None."""
    chain = chain_of(moves, MOST_ROWS)  # needs 3
    return chain if chain is not None and chain.row_bytes >= LEAST else None  # needs 2


def _move_from(value: ir.Value, constants: Constants) -> Move | None:
    """Return the move that reads ``value``, else None.

    A roll reads it by a Split or by several Slices, whose Concat ends the move.
    """
    readers = scope.consumers(value)
    if not readers:
        return None
    last = readers[0]
    if last.op_type == "Split" or (last.op_type == "Slice" and len(readers) > 1):
        joined = scope.consumers(last.outputs[0])
        last = joined[0] if joined else last
    move = move_to(last.outputs[0], constants)
    return move if move is not None and move.source is value else None


def _is_only_reader(writer: Move, reader: Move) -> bool:
    """True if only ``reader`` reads the result of ``writer``, in the same graph."""
    value, graph = writer.result, reader.nodes[-1].graph
    is_only_reader = all(node in reader.nodes for node in scope.consumers(value))
    is_separate = _is_closed(writer) and _is_closed(reader) and writer.nodes[-1].graph is graph
    return is_only_reader and is_separate and not value.is_graph_output()  # keeps 1


def _is_closed(move: Move) -> bool:
    """True if no other node reads the intermediate values of ``move``."""
    if len({node.graph for node in move.nodes}) != 1:
        return False
    inner = [output for node in move.nodes[:-1] for output in node.outputs]
    readers = [reader for output in inner for reader in scope.consumers(output)]
    is_returned = any(output.is_graph_output() for output in inner)
    return not is_returned and all(reader in move.nodes for reader in readers)


def _without_end_reshapes(moves: list[Move]) -> list[Move]:
    """Return ``moves`` without Reshapes at both ends that would make the gathered rows smaller.

    A Reshape at an end copies nothing, so the chain may end before it. It stays if it keeps the
    prefix and the suffix of the moves inside.
    """
    inner = list(moves)
    while not inner[0].copies:
        inner.pop(0)
    while not inner[-1].copies:
        inner.pop()
    prefix, suffix = min(m.prefix for m in inner), min(m.suffix for m in inner)
    start, end = moves.index(inner[0]), moves.index(inner[-1]) + 1
    while start and _keeps_prefix_and_suffix(moves[start - 1], prefix, suffix):
        start -= 1
    while end < len(moves) and _keeps_prefix_and_suffix(moves[end], prefix, suffix):
        end += 1
    return moves[start:end]


def _keeps_prefix_and_suffix(move: Move, prefix: int, suffix: int) -> bool:
    """True if ``move`` keeps the first ``prefix`` and the last ``suffix`` dims in place."""
    return move.prefix >= prefix and move.suffix >= suffix


def _gathered(chain: Chain, b: Builder) -> ir.Value:
    """Return the result of ``chain``, gathered from its source."""
    source, row_indices = chain.moves[0].source, chain.places.reshape(-1)
    moved_dim_count = len(source.shape or ()) - chain.prefix - chain.suffix
    rows = source if moved_dim_count == 1 else _reshaped(source, chain, [chain.rows], b)
    if row_indices.size != chain.rows or (row_indices != np.arange(row_indices.size)).any():
        rows = b.op("Gather", rows, b.constant(row_indices), axis=chain.prefix)
    return rows if chain.places.ndim == 1 else _reshaped(rows, chain, chain.places.shape, b)


def _reshaped(x: ir.Value, chain: Chain, middle: Sequence[int], b: Builder) -> ir.Value:
    """Return ``x`` reshaped to ``middle`` between the prefix and the suffix of ``chain``."""
    row = chain.moves[-1].result.shape
    suffix_dims = row.dims[len(row) - chain.suffix :] if row is not None else ()
    suffix_sizes = [dim for dim in suffix_dims if isinstance(dim, int)]
    return b.op("Reshape", x, b.const_i64([*[0] * chain.prefix, *middle, *suffix_sizes]))
