"""Scan: one copy of the body for each of a few rounds, else while_loop over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from smelt.mlpackage.program import Block, Element
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.control import (
    MOST_ROUNDS,
    block_results,
    named_inputs,
    refuse_changed,
    renamed,
    stacked,
    write_body,
)
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Refused, Val


@writes("Scan")
def scan(c: Call) -> None:
    """Write the body once for each row of the scanned inputs, or while_loop over the rows if their
    number is open or large."""
    graph = c.node.attributes["body"].as_graph()
    scanned = int(c.attribute("num_scan_inputs"))
    states = len(c.node.inputs) - scanned
    axes = list(c.attribute("scan_input_axes") or [0] * scanned)
    backwards = list(c.attribute("scan_input_directions") or [0] * scanned)
    results = len(c.node.outputs) - states
    out_axes = list(c.attribute("scan_output_axes") or [0] * results)
    reversed_outputs = list(c.attribute("scan_output_directions") or [0] * results)
    carried = [c.x(index) for index in range(states)]
    sources = [c.x(states + index) for index in range(scanned)]
    places = [axis % source.rank for axis, source in zip(axes, sources, strict=True)]
    count = sources[0].dims[places[0]]
    if count is None or count > MOST_ROUNDS:
        scans = [Scanned(*each) for each in zip(sources, places, backwards, strict=True)]
        stacks = _while_scan(c, graph, carried, scans, reversed_outputs)
        last, columns = stacks[:states], stacks[states:]
        moved = [_axis_moved(c, *each) for each in zip(columns, out_axes, strict=True)]
        c.done(*last, *moved)
        return
    rows: list[list[Val]] = []
    for number in range(count):
        slices = []
        for source, place, backward in zip(sources, places, backwards, strict=True):
            at = count - 1 - number if backward else number
            slices.append(take(c, source, np.asarray(at), place))
        found = write_body(c, graph, [*carried, *slices])
        carried = found[:states]
        rows.append(found[states:])
    stacks = []
    for index, column in enumerate(zip(*rows, strict=True)):
        ordered = list(reversed(column)) if reversed_outputs[index] else list(column)
        rank = column[0].rank + 1
        stacks.append(stacked(c, ordered, out_axes[index] % rank))
    c.done(*carried, *stacks)


class Scanned(NamedTuple):
    """A scanned input, its axis, and whether it is read from its end."""

    source: Val
    axis: int
    backward: int


def _while_scan(
    c: Call,
    graph: ir.Graph,
    carried: list[Val],
    scans: Sequence[Scanned],
    reversed_outputs: Sequence[int],
) -> list[Val]:
    """Write while_loop over the rows; returns the last states, and the results of all rounds.

    The loop carries a tensor of zeros for each result, and writes a row of it in each round.
    """
    count = c.size(scans[0].source, scans[0].axis)
    length = scans[0].source.dims[scans[0].axis]
    tables = [_zeros(c, value, count, length) for value in graph.outputs[len(carried) :]]
    start = c.op("add", c.w.constant(np.int32(0)), 0)
    variables = [start, *carried, *tables]
    first, second = (renamed(c, variables, label) for label in ("condition_in", "body_in"))
    with c.w.block() as tests:
        below = block_results(c, [c.op("less", first[0], count, element=Element.BOOL)])
    with c.w.block() as steps:
        number, states = second[0], second[1 : 1 + len(carried)]
        back = c.op("sub", c.op("sub", count, 1), number)
        slices = [
            _row(c, each.source, back if each.backward else number, each.axis) for each in scans
        ]
        found = write_body(c, graph, [*states, *slices])
        refuse_changed(carried, found[: len(carried)])
        written = [
            _with_row(c, table, back if backward else number, row)
            for table, backward, row in zip(
                second[1 + len(carried) :], reversed_outputs, found[len(carried) :], strict=True
            )
        ]
        names = block_results(c, [c.op("add", number, 1), *found[: len(carried)], *written])
    blocks = [Block(tests, below, named_inputs(first)), Block(steps, names, named_inputs(second))]
    kinds = [(each.element, each.dims) for each in variables]
    label = c.node.outputs[0].name or "scan"
    return c.w.ops("while_loop", kinds, name=label, blocks=blocks, loop_vars=variables)[1:]


def _zeros(c: Call, value: ir.Value, count: Val, length: int | None) -> Val:
    """Return zeros for ``count`` rows like ``value``, a result of each round.

    ``length`` is ``count`` as a number, None if it is open. Raises Refused for bools, which scatter
    of MIL lacks, and for sizes that only the body computes.
    """
    kind, dims = c.element(value), c.dims(value)
    if kind == Element.BOOL:
        raise Refused("the result of a round is bool, and the rounds are many", "cast it to int32")
    assert value.shape is not None
    sizes = [_size_outside(c, each) for each in value.shape]
    shape = c.vector([count if length is None else length, *sizes])
    zero = np.asarray(0, kind.numpy)
    return c.w.op("fill", kind, (length, *dims), shape=shape, value=zero)


def _size_outside(c: Call, size: int | ir.SymbolicDim) -> int | Val:
    """Return the size of a value in the body: a number, or a size that an input of the Scan has."""
    if isinstance(size, int):
        return size
    for index, value in enumerate(c.node.inputs):
        if value is not None and value.shape is not None and size.value is not None:
            for axis, dim in enumerate(value.shape):
                if dim == size:
                    return c.size(c.x(index), axis)
    raise Refused("the result of a round has a size that no input has, and the rounds are many")


def _row(c: Call, source: Val, number: Val, axis: int) -> Val:
    """Return row ``number`` of ``source`` along ``axis``, without that axis.

    Bools are gathered as int32: gather of MIL has none.
    """
    dims = (*source.dims[:axis], *source.dims[axis + 1 :])
    more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
    numbers = c.cast(source, Element.INT32) if source.element == Element.BOOL else source
    row = c.w.op(
        "gather", numbers.element, dims, x=numbers, indices=number, axis=axis, batch_dims=0, **more
    )
    return c.cast(row, source.element)


def _with_row(c: Call, table: Val, number: Val, row: Val) -> Val:
    """Return ``table`` with ``row`` at ``number``."""
    more: dict[str, Any] = {"validate_indices": False} if c.w.ios >= 17 else {}
    return c.w.op(
        "scatter",
        table.element,
        table.dims,
        data=table,
        indices=c.expand(number, [0]),
        updates=c.expand(row, [0]),
        axis=0,
        mode="update",
        **more,
    )


def _axis_moved(c: Call, table: Val, axis: int) -> Val:
    """Return ``table`` with its first axis at ``axis``."""
    others = list(range(1, table.rank))
    others.insert(axis % table.rank, 0)
    return c.transpose(table, others)
