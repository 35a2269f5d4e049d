"""Read loops, branches and calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from smelt.frontends.stablehlo.divisions import lower_division
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.primitive_calls import primitive_call
from smelt.frontends.stablehlo.registry import reads
from smelt.frontends.stablehlo.scans import lower_scan
from smelt.frontends.stablehlo.sizes import as_array


@reads("func.call")
def _call(cx: Any, op: Operation, *operands: Any) -> Any:
    """Return the results of a call: of a recognized function, or of the callee's body."""
    for results in (lower_division(cx, op), primitive_call(cx, op)):
        if results is not None:
            return results
    return cx.function(op.word("callee"), operands, op)


def returned_by(block: Any) -> list[Any]:
    """Return the values that a body returns."""
    return list(block.operations[len(block.operations) - 1].operation.operands)


def origin(cx: Any, value: Any) -> Any:
    """Return the value that ``value`` equals behind calls that return an operand unchanged.

    JAX exports the body of a loop with such calls. ``_while`` needs the origin to find the carries
    that an iteration does not change. Returns ``value`` itself if no such call produces it.
    """
    while getattr(value.owner, "name", "") == "func.call":
        call = value.owner
        position = list(call.results).index(value)
        called = cx.functions[Operation(call).word("callee")].regions[0].blocks[0]
        inner = origin(cx, returned_by(called)[position])
        positions = [i for i, argument in enumerate(called.arguments) if argument == inner]
        if not positions:
            break
        value = call.operands[positions[0]]
    return value


@reads("while")
def _while(cx: Any, op: Operation, *operands: Any) -> Any:
    """Read a loop; a recognized scan becomes ``lax.scan``.

    Carries that the body returns unchanged are hoisted, so that sizes stay known.
    """
    condition, body = op.view.regions
    block = body.blocks[0]
    returned = [origin(cx, value) for value in returned_by(block)]
    scan_results = lower_scan(cx, op, operands, returned)
    if scan_results is not None:
        return scan_results
    pairs = enumerate(zip(returned, block.arguments, strict=True))
    changing = [i for i, (value, argument) in pairs if value != argument]

    def all_carries(carried: Sequence[Any]) -> list[Any]:
        """Return the operands with the changing carries replaced by ``carried``."""
        values = list(operands)
        for i, value in zip(changing, carried, strict=True):
            values[i] = value
        return values

    def step(carried: Sequence[Any]) -> tuple[Any, ...]:
        """Return the changing carries after one iteration."""
        results = cx.run_body(body, all_carries(carried))
        return tuple(results[i] for i in changing)

    def continues(carried: Sequence[Any]) -> Any:
        """Return whether the loop runs another iteration."""
        return cx.run_body(condition, all_carries(carried))[0]

    final = lax.while_loop(continues, step, tuple(as_array(operands[i]) for i in changing))
    return all_carries(final)


@reads("case")
def _case(cx: Any, op: Operation, index: Any) -> Any:
    """Read a switch; an index out of range selects the last branch, as in StableHLO.

    JAX's own switch clamps the index.
    """
    regions = list(op.view.regions)
    last = len(regions) - 1
    if isinstance(index, np.ndarray):
        chosen = int(index)
        if not 0 <= chosen <= last:
            chosen = last
        return cx.run_body(regions[chosen], ())
    index = lax.select(lax.lt(index, np.int32(0)), np.int32(last) + 0 * index, index)
    return list(lax.switch(index, [_branch(cx, region) for region in regions]))


@reads("if")
def _if(cx: Any, op: Operation, condition: Any) -> Any:
    """Return the results of the branch that ``condition`` selects."""
    true, false = op.view.regions
    return list(lax.cond(condition, _branch(cx, true), _branch(cx, false)))


def _branch(cx: Any, region: Any) -> Callable[[], tuple[Any, ...]]:
    """Return a function without parameters that runs ``region``."""
    return lambda: tuple(cx.run_body(region, ()))
