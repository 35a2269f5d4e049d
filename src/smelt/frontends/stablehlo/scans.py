"""Recognize scans: counting loops that read rows of some tensors and write rows of others.

``jax.export`` writes ``lax.scan`` as a while loop. A model needs the scan, for its known length.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import lax

from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.producers import producer, returned_by, splat
from smelt.frontends.stablehlo.rows import Row, row_read, row_written
from smelt.frontends.stablehlo.sizes import Sizes, as_array


@dataclass
class _Scan:
    """A loop that may be a scan of ``length`` steps, with the body ``block``.

    ``counter`` is the number of the argument that counts the steps. ``read`` and ``written`` hold
    the rows that a step reads and writes, by the argument number of the tensor. ``reverse`` is
    True if steps go from the last row to the first.
    """

    block: Any
    length: Any
    counter: int
    reverse: bool = False
    read: dict[int, list[Row]] = field(default_factory=dict)
    written: dict[int, Row] = field(default_factory=dict)


def lower_scan(cx: Any, op: Operation, operands: Any, returned: list[Any]) -> list[Any] | None:
    """Return the results of a loop that is a scan, one per argument; None for other loops.

    ``returned`` are the values that the body returns, followed back through functions that return
    them unchanged.
    """
    scan = _counting_loop(cx, op, operands, returned)
    if scan is None or not _record_rows(cx, scan, operands, returned):
        return None
    return _run_as_scan(cx, scan, operands, returned)


def _counting_loop(cx: Any, op: Operation, operands: Any, returned: list[Any]) -> _Scan | None:
    """Return the loop as a _Scan if it counts from 0 by 1 to a known size, else None."""
    condition, body = (region.blocks[0] for region in op.view.regions)
    compare = producer(returned_by(condition)[0])
    if compare is None or compare.name != "stablehlo.compare":
        return None
    if Operation(compare).word("comparison_direction") != "LT":
        return None
    count, end = compare.operands
    arguments = list(condition.arguments)
    if count not in arguments or not cx.is_known(end):
        return None
    counter = arguments.index(count)
    start, length = operands[counter], cx.known_dims(cx.value(end))
    step = producer(returned[counter])
    if length is None or len(length) != 1 or not isinstance(start, np.ndarray) or start != 0:
        return None
    if step is None or step.name != "stablehlo.add" or step.operands[0] != body.arguments[counter]:
        return None
    if not splat(step.operands[1]).startswith("1 :"):
        return None
    return _Scan(body, length[0], counter)


def _record_rows(cx: Any, scan: _Scan, operands: Any, returned: list[Any]) -> bool:
    """Record in ``scan`` the rows that the loop reads and writes; True if the loop is a scan.

    A scan reads and writes all rows in one direction: first to last, or last to first. A tensor
    whose rows have another index remains a carry.
    """
    reversals: set[bool] = set()
    for i, argument in enumerate(scan.block.arguments):
        if i == scan.counter or np.ndim(operands[i]) == 0 or operands[i].shape[0] != scan.length:
            continue
        is_unchanged = returned[i] == argument
        if is_unchanged:
            rows = _rows_read(cx, scan, argument, operands[i])
        else:
            rows = _rows_written(cx, scan, argument, returned[i])
        if not rows:
            continue
        reversals_of_rows = [_is_reversed(scan, row.index, cx) for row in rows]
        known = [is_reversed for is_reversed in reversals_of_rows if is_reversed is not None]
        if len(known) < len(rows):
            continue
        reversals.update(known)
        if is_unchanged:
            scan.read[i] = rows
        else:
            scan.written[i] = rows[0]
    scan.reverse = True in reversals
    return len(reversals) == 1


def _rows_read(cx: Any, scan: _Scan, argument: Any, tensor: Any) -> list[Row]:
    """Return the rows of ``argument`` that the body reads; empty if it reads more than rows.

    ``tensor`` is the array of the argument.
    """
    inside = {view.operation for view in scan.block.operations}
    rows: list[Row] = []
    for reader in _readers(argument):
        row = row_read(cx, reader) if reader in inside else None
        if row is None or row.tensor != argument or not _reads_full_rows(cx, row, tensor):
            return []
        rows.append(row)
    return rows


def _rows_written(cx: Any, scan: _Scan, argument: Any, result: Any) -> list[Row]:
    """Return the one row of ``argument`` that the body writes to compute ``result``.

    Empty if the body does not write one row, or reads ``argument`` elsewhere.
    """
    inside = {view.operation for view in scan.block.operations}
    update = producer(result)
    if update not in inside or _readers(argument) != [update]:
        return []
    row = row_written(cx, update)
    return [row] if row is not None and row.tensor == argument else []


def _readers(argument: Any) -> list[Any]:
    """Return the operations that read ``argument``, except the return of the body."""
    operations = [use.owner.operation for use in argument.uses]
    return [operation for operation in operations if operation.name != "stablehlo.return"]


def _reads_full_rows(cx: Any, row: Row, tensor: Any) -> bool:
    """True if the call that reads ``row`` returns a whole row of ``tensor``.

    The shape of the call's result decides. With symbolic sizes only a trace of the callee tells it.
    """
    call = producer(row.value)
    row_operands = {row.tensor: tensor, row.index: np.int32(0)}
    if not all(x in row_operands or cx.is_known(x) for x in call.operands):
        return False
    operands = [row_operands[x] if x in row_operands else cx.value(x) for x in call.operands]
    result_types = jax.eval_shape(lambda: cx.function(Operation(call).word("callee"), operands))
    return bool(result_types[0].shape == tensor.shape[1:])


def _is_reversed(scan: _Scan, index: Any, cx: Any) -> bool | None:
    """Return False if ``index`` is the counter, True if it is ``length - counter - 1``.

    None for other indices.
    """
    counter = scan.block.arguments[scan.counter]
    if index == counter:
        return False
    difference = producer(index)
    if difference is None or difference.name != "stablehlo.subtract":
        return None
    minuend = producer(difference.operands[0])
    if minuend is None or minuend.name != "stablehlo.subtract" or minuend.operands[1] != counter:
        return None
    end = minuend.operands[0]
    end_dims = cx.known_dims(cx.value(end)) if cx.is_known(end) else None
    counts_down = end_dims == (scan.length,) and splat(difference.operands[1]).startswith("1 :")
    return True if counts_down else None


def _run_as_scan(cx: Any, scan: _Scan, operands: Any, returned: list[Any]) -> list[Any] | None:
    """Return the results of the loop, computed by ``lax.scan``; None if it writes partial rows.

    Arguments of the loop have one of four roles; ``returned`` are their values after an iteration:

    1. unchanged: the loop returns them as they are, so they stay outside of the carry;
    2. ``scan.read``: unchanged tensors whose rows become the inputs of each step;
    3. ``scan.written``: tensors whose rows become the outputs of each step;
    4. ``carried``: the others; the counter only if the body reads it.
    """
    carried = _carried_arguments(cx, scan, returned)
    results = [returned[position] for position in carried]
    results += [row.value for row in scan.written.values()]

    def step(carry: Any, rows: Any) -> Any:
        """Run the body once; return the new carry and the rows that it writes."""
        values = list(operands)
        for position, value in zip(carried, carry, strict=True):
            values[position] = value
        values_of_rows = {
            row.value: value
            for tensor_rows, value in zip(scan.read.values(), rows, strict=True)
            for row in tensor_rows
        }
        computed = cx.results(scan.block, values, results, values_of_rows)
        return tuple(computed[: len(carried)]), tuple(computed[len(carried) :])

    rows = tuple(as_array(operands[position]) for position in scan.read)
    initial = tuple(as_array(operands[position]) for position in carried)
    final, stacked = lax.scan(step, initial, rows, length=scan.length, reverse=scan.reverse)
    new_values = {
        scan.counter: Sizes([scan.length], operands[scan.counter].dtype, ()),
        **dict(zip(carried, final, strict=True)),
        **dict(zip(scan.written, stacked, strict=True)),
    }
    if any(
        jax.numpy.shape(new_values[position]) != operands[position].shape
        for position in scan.written
    ):
        return None
    return [new_values.get(position, operand) for position, operand in enumerate(operands)]


def _carried_arguments(cx: Any, scan: _Scan, returned: list[Any]) -> list[int]:
    """Return the numbers of the arguments that a step passes to the next step.

    ``lax.scan`` counts the steps, so the counter is carried only if the body reads it, other than
    to find rows.
    """
    arguments = list(scan.block.arguments)
    changing = [
        position
        for position, value in enumerate(returned)
        if value != arguments[position] and position not in scan.written
    ]
    without_counter = [position for position in changing if position != scan.counter]
    results = [returned[position] for position in without_counter]
    results += [row.value for row in scan.written.values()]
    rows_read = frozenset(row.value for rows in scan.read.values() for row in rows)
    reads_counter = arguments[scan.counter] in cx.steps(scan.block, results, rows_read).read
    return changing if reads_counter else without_counter
