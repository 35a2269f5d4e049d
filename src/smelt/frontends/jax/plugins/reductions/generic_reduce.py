"""Lower ``reduce`` by any computation, over one or several arrays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import ClosedJaxpr
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.windows.monoid_reductions import fold_axes
from smelt.frontends.jax.plugins.windows.monoids import Monoid, monoid, of_primitive
from smelt.frontends.jax.registry import lowers


@lowers("reduce")
def reduce(
    cx: Lowering,
    *operands: ir.Value,
    computation: object,
    jaxpr: ClosedJaxpr,
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> list[ir.Value]:
    """Fold the arrays over ``dimensions`` by the computation in ``jaxpr``."""
    count = len(operands) // 2
    return folded(cx, monoid(jaxpr), operands[:count], dimensions, operands[count:])


def folded(
    cx: Lowering,
    reducer: Monoid,
    xs: Sequence[ir.Value],
    axes: Sequence[int],
    initial: Sequence[ir.Value],
) -> list[ir.Value]:
    """Return ``xs`` folded over ``axes``, computed in a type that runtimes have and cast back."""
    shape = tuple(cx.avals_in[0].shape)
    wide = [Operand(reducer.wide(cx, x), shape) for x in xs]
    starts = [reducer.wide(cx, start) for start in initial]
    results = fold_axes(cx, reducer, wide, [int(axis) for axis in axes], starts)
    return [
        cx.cast(result.value, np.dtype(aval.dtype))
        for result, aval in zip(results, cx.avals_out, strict=True)
    ]


def folded_by(cx: Lowering, name: str, x: ir.Value, axes: Sequence[int]) -> ir.Value:
    """Return ``x`` folded by the primitive ``name`` from its identity."""
    reducer = of_primitive(name, np.dtype(cx.avals_in[0].dtype))
    assert reducer.neutral is not None
    return folded(cx, reducer, [x], axes, [cx.constant(reducer.neutral[0])])[0]
