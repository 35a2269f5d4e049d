"""Read custom calls and composites.

A custom call names a routine outside of StableHLO, such as one of LAPACK. A composite names an
operator, and holds a decomposition of it.
"""

from __future__ import annotations

from typing import Any

from jax import lax

from smelt.frontends.stablehlo.elementwise import CHLO
from smelt.frontends.stablehlo.lapack import solver_of
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.reductions import window
from smelt.frontends.stablehlo.registry import reads
from smelt.frontends.stablehlo.sizes import as_array

PASSED_ON = (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "LayoutConstraint",
)
"""Calls that only state the placement or layout of an array, so they return the array."""


@reads("sdy.sharding_constraint")
def _sharding_constraint(cx: Any, op: Operation, x: Any) -> Any:
    """Return ``x``: a program for one device has only one placement."""
    return x


@reads("custom_call")
def _custom_call(cx: Any, op: Operation, *operands: Any) -> Any:
    """Return the results of a custom call: a placement, a window reduction or a LAPACK routine."""
    target = op.word("call_target_name")
    if target == "shape_assertion":  # The specs of the trace satisfy the asserted relations.
        return []
    if target in PASSED_ON:
        return [as_array(operands[0])]
    if target == "stablehlo.dynamic_reduce_window":
        return _dynamic_window(cx, op, operands)
    solver = solver_of(target)
    if solver is None:
        raise op.unsupported(f"it calls {target!r}, which runs outside of StableHLO", "E101")
    # Where sizes are symbolic, JAX appends the shapes of the results as operands. A solver does
    # not read them.
    return solver(op, [*map(as_array, operands)])[: len(op.view.results)]


def _dynamic_window(cx: Any, op: Operation, operands: Any) -> Any:
    """Return a reduction over windows; window sizes, strides and padding are operands."""
    x, start = map(as_array, operands[:2])
    dims, strides, base, dilation, padding = (cx.dims(op, sizes) for sizes in operands[2:])
    pairs = list(zip(padding[::2], padding[1::2], strict=True))
    (name,) = (str(item.value) for item in op.view.attributes["called_computations"])
    region = cx.functions[name].regions[0]
    return window(cx, op, region, (x, start), (dims, strides, pairs, base, dilation))


@reads("composite")
def _composite(cx: Any, op: Operation, *operands: Any) -> Any:
    """Return the results of the operator that the composite names.

    An operator that JAX has no function for is computed by the composite's decomposition.
    """
    name = op.word("name")
    function = CHLO.get(name.removeprefix("chlo."))
    if function is not None and name.startswith("chlo."):
        return function(*map(as_array, operands))
    if name == "chlo.top_k":
        return list(lax.top_k(as_array(operands[0]), op.entry("composite_attributes", "k")))
    return cx.function(op.word("decomposition"), operands, op)


@reads("chlo.top_k")
def _top_k(cx: Any, op: Operation, x: Any) -> Any:
    """Return the k largest elements and their indices."""
    return list(lax.top_k(x, op.integer("k")))
