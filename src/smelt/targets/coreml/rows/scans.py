"""Scan: one copy of the body for each of a few rounds, else while_loop over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx_ir as ir

from smelt.mlpackage.program import Element
from smelt.targets.coreml.blocks import stacked, write_body
from smelt.targets.coreml.call import Call
from smelt.targets.coreml.collected_results import counted_loop, is_unrolled
from smelt.targets.coreml.registry import writes
from smelt.targets.coreml.rows.slices import take
from smelt.targets.coreml.writer import Val


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
    if count is None or not is_unrolled(graph, count, (0, 0)):
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
    """Write while_loop over the rows; return the last states, and the results of all rounds."""
    length = scans[0].source.dims[scans[0].axis]
    count = c.size(scans[0].source, scans[0].axis) if length is None else length

    def round_of(number: Val, states: list[Val]) -> list[Val]:
        """Write the round for row ``number``, counted from the end for inputs read backwards."""
        back = number
        if any(each.backward for each in scans):
            back = c.op("sub", c.op("sub", count, 1) if length is None else length - 1, number)
        slices = [
            _row(c, each.source, back if each.backward else number, each.axis) for each in scans
        ]
        return write_body(c, graph, [*states, *slices])

    results = graph.outputs[len(carried) :]
    return counted_loop(c, count, carried, results, round_of, reversed_outputs)


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


def _axis_moved(c: Call, table: Val, axis: int) -> Val:
    """Return ``table`` with its first axis at ``axis``."""
    others = list(range(1, table.rank))
    others.insert(axis % table.rank, 0)
    return c.transpose(table, others)
