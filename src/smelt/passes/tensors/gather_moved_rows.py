"""Read rows that are rolled, and moved before or after that, by one Gather.

    before   x: [N,H,W,C] ─> Slice, Slice ─> Concat(1) ─> Slice, Slice ─> Concat(2)
               ─> Reshape [N,H/7,7,W/7,7,C] ─> Transpose(0,1,3,2,4,5) ─> Reshape [M,49,C] ─> y
    after    x ─> Reshape [N,H*W,C] ─> Gather(places, axis = 1) ─> Reshape [M,49,C] ─> y

So the shifted windows of Swin (Liu et al. 2021), which ``torch.roll`` and ``jnp.roll`` make: one
copy takes the place of five. Measured in ONNX Runtime on maps of 14 to 112 rows: .37 to .5 of the
time; a single roll .53 to .65.

Needs    (1) a roll, which is a Concat of parts of one value along one axis, and before and behind
         it a chain of Reshapes, Transposes, Slices, Gathers by constants and other rolls, sizes
         known along axes that are moved; (2) last dims that all leave alone, of at least 64 bytes,
         or 128 if one move is all: ONNX Runtime gathers smaller rows more slowly; (3) places
         that take at most 64 KiB.
Keeps    (1) results that something else reads or a graph returns: a chain ends there; (2) the
         nodes for targets that compute operators themselves, in whose kernels a slice costs less.
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
from smelt.passes.tensors.row_moves import Chain, Move, chain_of, move_to

MOST_ROWS = 64 * 1024 // 4
"""Places of 4 bytes that a constant may hold."""

MOST_MOVES = 32
"""Moves of a chain: what is longer becomes several."""

LEAST, LEAST_ALONE = 64, 128
"""Bytes of a row in a chain of several copies, and where there is one."""


@graph_pass("gather_moved_rows", __doc__, exactness=EXACT, after=("fuse_attention",))
def gather_moved_rows(
    cx: PassContext, rewriter: Rewriter, stats: RuleStats, options: Options
) -> None:
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
    """The longest chain of moves around ``concat`` that one Gather does faster."""
    roll = move_to(concat.outputs[0], constants)
    if roll is None or not _is_closed(roll):  # needs 1
        return None
    moves = [roll]
    while len(moves) < MOST_MOVES:
        above = move_to(moves[0].source, constants)
        if above is None or not _hands_on(above, moves[0]) or not _worth([above, *moves]):
            break
        moves.insert(0, above)
    while len(moves) < MOST_MOVES:
        below = _move_from(moves[-1].result, constants)
        if below is None or not _hands_on(moves[-1], below) or not _worth([*moves, below]):
            break
        moves.append(below)
    chain = _worth(_trimmed(moves))
    alone = sum(move.copies for move in moves) == 1
    return chain if chain is not None and chain.row_bytes >= LEAST_ALONE * alone else None


def _worth(moves: list[Move]) -> Chain | None:
    chain = chain_of(moves, MOST_ROWS)  # needs 3
    return chain if chain is not None and chain.row_bytes >= LEAST else None  # needs 2


def _move_from(value: ir.Value, constants: Constants) -> Move | None:
    """The move that begins with ``value``."""
    readers = scope.consumers(value)
    if not readers:
        return None
    last = readers[0]
    if last.op_type == "Split" or (last.op_type == "Slice" and len(readers) > 1):
        joined = scope.consumers(last.outputs[0])
        last = joined[0] if joined else last
    move = move_to(last.outputs[0], constants)
    return move if move is not None and move.source is value else None


def _hands_on(maker: Move, reader: Move) -> bool:
    """True if what ``maker`` makes is read by ``reader`` alone."""
    value, graph = maker.result, reader.nodes[-1].graph
    alone = all(node in reader.nodes for node in scope.consumers(value))
    closed = _is_closed(maker) and _is_closed(reader) and maker.nodes[-1].graph is graph
    return alone and closed and not value.is_graph_output()  # keeps 1


def _is_closed(move: Move) -> bool:
    """True if nothing else reads what the nodes of ``move`` hand to each other."""
    inner = [output for node in move.nodes[:-1] for output in node.outputs]
    return len({node.graph for node in move.nodes}) == 1 and not any(
        output.is_graph_output() or any(r not in move.nodes for r in scope.consumers(output))
        for output in inner
    )


def _trimmed(moves: list[Move]) -> list[Move]:
    """``moves`` without Reshapes at the ends, unless a Gather can read or make what they do."""
    inner = list(moves)
    while not inner[0].copies:
        inner.pop(0)
    while not inner[-1].copies:
        inner.pop()
    prefix, suffix = min(m.prefix for m in inner), min(m.suffix for m in inner)
    start, end = moves.index(inner[0]), moves.index(inner[-1]) + 1
    while start and _keeps(moves[start - 1], prefix, suffix):
        start -= 1
    while end < len(moves) and _keeps(moves[end], prefix, suffix):
        end += 1
    return moves[start:end]


def _keeps(move: Move, prefix: int, suffix: int) -> bool:
    return move.prefix >= prefix and move.suffix >= suffix


def _gathered(chain: Chain, b: Builder) -> ir.Value:
    """The result of ``chain``, gathered from its source."""
    source, order = chain.moves[0].source, chain.places.reshape(-1)
    rank = len(source.shape or ()) - chain.prefix - chain.suffix
    rows = source if rank == 1 else _reshaped(source, chain, [chain.rows], b)
    if order.size != chain.rows or (order != np.arange(order.size)).any():
        rows = b.op("Gather", rows, b.constant(order), axis=chain.prefix)
    return rows if chain.places.ndim == 1 else _reshaped(rows, chain, chain.places.shape, b)


def _reshaped(x: ir.Value, chain: Chain, middle: Sequence[int], b: Builder) -> ir.Value:
    """``x`` with other dims between those that stay, of which the first ones may be open."""
    row = chain.moves[-1].result.shape
    last = row.dims[len(row) - chain.suffix :] if row is not None else ()
    kept = [dim for dim in last if isinstance(dim, int)]
    return b.op("Reshape", x, b.const_i64([*[0] * chain.prefix, *middle, *kept]))
