"""Recognize functions that read or write one row of a tensor.

JAX exports a scan as a loop that calls such functions. Row ``i`` of ``x`` is ``x[i]``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jaxlib.mlir import ir

from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.producers import producer, returned_by, splat


class Row(NamedTuple):
    """Row ``index`` of ``tensor``; both are values of the body that reads or writes the row.

    ``value`` is the written value, or the result of the read.
    """

    tensor: Any
    index: Any
    value: Any


_RESHAPES = ("stablehlo.reshape", "stablehlo.dynamic_reshape")
_BROADCASTS = ("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")


def row_read(cx: Any, call: Any) -> Row | None:
    """Return the row that ``call`` reads; None for other calls.

    The body of the callee is ``reshape(dynamic_slice(tensor, index, 0, 0, ...))``, where the
    reshape drops the first dim. The slice may be only a part of the row; ``scans`` compares shapes.
    """
    block, reshape = _callee_and_result(cx, call)
    if reshape is None or reshape.name not in _RESHAPES:
        return None
    slice_ = producer(reshape.operands[0])
    starts = _starts_by_axis(slice_)
    if not starts or not _is_row(starts, block):
        return None
    tensor, index = (_operand_for(call, block, value) for value in (slice_.operands[0], starts[0]))
    if tensor is None or len(_shape(slice_.results[0])) - 1 != len(_shape(call.results[0])):
        return None
    return Row(tensor, index, call.results[0])


def row_written(cx: Any, call: Any) -> Row | None:
    """Return the row that ``call`` writes; None for other calls.

    The body of the callee is ``dynamic_update_slice(tensor, broadcast_in_dim(row), index, 0)``,
    with one 0 for each further dim. The broadcast adds a first dim of size 1.
    """
    block, update = _callee_and_result(cx, call)
    if update is None or update.name != "stablehlo.dynamic_update_slice":
        return None
    tensor, row, *starts = update.operands
    broadcast = producer(row)
    if broadcast is None or broadcast.name not in _BROADCASTS or _shape(row)[0] != 1:
        return None
    dims_of_row = Operation(broadcast).integers("broadcast_dimensions")
    if dims_of_row != tuple(range(1, len(starts))) or not _is_row(starts, block):
        return None
    parts = [_operand_for(call, block, x) for x in (tensor, starts[0], broadcast.operands[0])]
    return None if any(part is None for part in parts) else Row(*parts)


def _callee_and_result(cx: Any, call: Any) -> tuple[Any, Any]:
    """Return ``(body of the callee, operation that computes its result)``.

    ``(None, None)`` unless ``call`` is a call with one result.
    """
    if call is None or call.name != "func.call" or len(call.results) != 1:
        return None, None
    block = cx.functions[Operation(call).word("callee")].regions[0].blocks[0]
    return block, producer(returned_by(block)[0])


def _starts_by_axis(slice_: Any) -> list[Any]:
    """Return the start of a dynamic slice along each axis; empty for other operations."""
    if slice_ is None:
        return []
    if slice_.name == "stablehlo.dynamic_slice":
        return list(slice_.operands)[1:]
    if slice_.name != "stablehlo.real_dynamic_slice":
        return []
    # With symbolic sizes JAX writes start = clamp(0, concatenate(starts), last) and
    # limit = start + sizes.
    start, end = (producer(operand) for operand in list(slice_.operands)[1:3])
    if end is None or end.name != "stablehlo.add" or end.operands[0] != slice_.operands[1]:
        return []
    if start is not None and start.name == "stablehlo.clamp":
        start = producer(start.operands[1])
    if start is None or start.name != "stablehlo.concatenate":
        return []
    producers = [producer(operand) for operand in start.operands]
    return [
        op.operands[0] if op is not None and op.name == "stablehlo.reshape" else operand
        for op, operand in zip(producers, start.operands, strict=True)
    ]


def _is_row(starts: list[Any], block: Any) -> bool:
    """True if the first start is an argument of the body and all others are 0."""
    other_starts_are_zero = all(splat(start).startswith("0 :") for start in starts[1:])
    return bool(starts) and other_starts_are_zero and starts[0] in list(block.arguments)


def _operand_for(call: Any, block: Any, argument: Any) -> Any:
    """Return the operand that ``call`` passes for ``argument`` of the callee's ``block``.

    None if the value ``argument`` is not an argument of the block.
    """
    arguments = list(block.arguments)
    return call.operands[arguments.index(argument)] if argument in arguments else None


def _shape(value: Any) -> list[int]:
    """Return the shape of ``value``; sizes that are not static are negative."""
    return list(ir.RankedTensorType(value.type).shape)
