"""Recognize scans: counting loops that read rows of some tensors and write rows of others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import lax

from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.producers import producer, splat
from smelt.frontends.stablehlo.rows import Row, row_read, row_written
from smelt.frontends.stablehlo.sizes import Sizes, as_array


@dataclass
class _Scan:
    """The role of each argument of a loop: the counter, a tensor read or written by rows, or a
    carry.

    ``read`` and ``written`` hold the rows by the tensor's argument number.
    """

    block: Any
    length: Any
    counter: int
    reverse: bool = False
    read: dict[int, list[Row]] = field(default_factory=dict)
    written: dict[int, Row] = field(default_factory=dict)


def lower_scan(cx: Any, op: Operation, operands: Any, returned: list[Any]) -> list[Any] | None:
    """Return the results of a loop that is a scan; None for other loops.

    ``returned`` are the values that the body returns, followed back through functions that return
    them unchanged.
    """
    scan = _counted(cx, op, operands, returned)
    if scan is None or not _find_rows(cx, scan, operands, returned):
        return None
    return _bound(cx, scan, operands, returned)


def _counted(cx: Any, op: Operation, operands: Any, returned: list[Any]) -> _Scan | None:
    """Return the loop as a _Scan if it counts from 0 by 1 to a known size, else None."""
    condition, body = (region.blocks[0] for region in op.view.regions)
    compare = producer(list(condition.operations)[-1].operation.operands[0])
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


def _find_rows(cx: Any, scan: _Scan, operands: Any, returned: list[Any]) -> bool:
    """Record the rows that the loop reads or writes in ``scan``; True if it is a scan.

    A scan has rows, and all are read and written in one direction: first to last, or last to first.
    """
    arguments = list(scan.block.arguments)
    inside = {view.operation for view in scan.block.operations}
    reversals: set[bool] = set()
    for i, argument in enumerate(arguments):
        if i == scan.counter or np.ndim(operands[i]) == 0:
            continue
        if operands[i].shape[0] != scan.length:
            continue
        users = [use.owner.operation for use in argument.uses]
        users = [user for user in users if user.name != "stablehlo.return"]
        if returned[i] == argument:
            rows = [row_read(cx, user) if user in inside else None for user in users]
            rows = [row if row and _reads_full_rows(cx, row, operands[i]) else None for row in rows]
        else:
            update = producer(returned[i])
            rows = [row_written(cx, update) if update in inside and users == [update] else None]
        own_rows = [row for row in rows if row is not None and row.tensor == argument]
        directions = {_direction(scan, row.index, cx) for row in own_rows}
        if not rows or len(own_rows) != len(rows) or None in directions:
            continue
        reversals |= {direction for direction in directions if direction is not None}
        if returned[i] == argument:
            scan.read[i] = own_rows
        else:
            scan.written[i] = own_rows[0]
    scan.reverse = True in reversals
    return len(reversals) == 1


def _reads_full_rows(cx: Any, row: Row, tensor: Any) -> bool:
    """True if the call that reads ``row`` returns a whole row of ``tensor``.

    The callee is traced for the shape of its result.
    """
    call = producer(row.value)
    row_operands = {row.tensor: tensor, row.index: np.int32(0)}
    if not all(x in row_operands or cx.is_known(x) for x in call.operands):
        return False
    operands = [row_operands[x] if x in row_operands else cx.value(x) for x in call.operands]
    result_types = jax.eval_shape(lambda: cx.function(Operation(call).word("callee"), operands))
    return bool(result_types[0].shape == tensor.shape[1:])


def _direction(scan: _Scan, index: Any, cx: Any) -> bool | None:
    """Return False for the loop counter, True for ``size - counter - 1``, None for other
    indices.
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
    return (
        True
        if end_dims == (scan.length,) and splat(difference.operands[1]).startswith("1 :")
        else None
    )


def _bound(cx: Any, scan: _Scan, operands: Any, returned: list[Any]) -> list[Any] | None:
    """Return the results of ``scan`` as a ``lax.scan``; None if it writes partial rows."""
    arguments = list(scan.block.arguments)
    ends = [scan.written[i].value if i in scan.written else v for i, v in enumerate(returned)]
    ends[scan.counter] = returned[scan.counter]
    unchanged = [i for i, value in enumerate(returned) if value == arguments[i]]
    carried = [i for i in range(len(ends)) if i not in {*unchanged, *scan.written}]
    results = [ends[i] for i in [*carried, *scan.written] if i != scan.counter]
    row_values = frozenset(row.value for rows in scan.read.values() for row in rows)
    if arguments[scan.counter] not in cx.steps(scan.block, results, row_values).read:
        carried.remove(scan.counter)
    results = [ends[i] for i in [*carried, *scan.written]]

    def step(carry: Any, rows: Any) -> Any:
        """Run the body once; return the new carry and the rows that it writes."""
        values = list(operands)
        for i, value in zip(carried, carry, strict=True):
            values[i] = value
        values_of_rows = {
            row.value: value
            for tensor_rows, value in zip(scan.read.values(), rows, strict=True)
            for row in tensor_rows
        }
        computed = cx.results(scan.block, values, results, values_of_rows)
        return tuple(computed[: len(carried)]), tuple(computed[len(carried) :])

    rows = tuple(as_array(operands[i]) for i in scan.read)
    initial = tuple(as_array(operands[i]) for i in carried)
    final, stacked = lax.scan(step, initial, rows, length=scan.length, reverse=scan.reverse)
    results_by_argument = list(operands)
    dtype = operands[scan.counter].dtype
    results_by_argument[scan.counter] = Sizes([scan.length], dtype, ())
    for i, value in [*zip(carried, final, strict=True), *zip(scan.written, stacked, strict=True)]:
        results_by_argument[i] = value
    full_rows = all(
        jax.numpy.shape(results_by_argument[i]) == operands[i].shape for i in scan.written
    )
    return results_by_argument if full_rows else None
