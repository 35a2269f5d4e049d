"""Computations over a mesh of one device, and reductions over named axes of vmap.

On one device, collectives return their operands. ``shard_map`` over more devices is refused, so
every named axis has size 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.compat import Jaxpr
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.plugins.reductions.reductions import reduce
from smelt.frontends.jax.registry import lowers

REDUCERS = {
    "psum": "ReduceSum",
    "psum_invariant": "ReduceSum",
    "pmax": "ReduceMax",
    "pmin": "ReduceMin",
}


@lowers(
    "shard_map",
    broadcasts=True,
    params=("in_specs", "out_specs", "check_vma", "newly_manual_axes", "debug_info"),
)
def shard_map(
    cx: Lowering, *_: ir.Value, jaxpr: Jaxpr, mesh: Any, **params: object
) -> list[Operand]:
    """Inline the body; refuses a mesh of more than one device."""
    if mesh.size != 1:
        raise cx.unsupported(
            f"its mesh has {mesh.size} devices, and a model runs on one",
            "make the mesh of one device, or trace the function without shard_map",
        )
    return cx.inline(jaxpr, cx.operands)


@lowers(*REDUCERS)
def reduction(
    cx: Lowering,
    x: ir.Value,
    *,
    axes: Sequence[int | str],
    axis_index_groups: object = None,
) -> ir.Value:
    """Reduce over the axes that are numbers: vmap replaces the names of mapped axes by numbers.

    Axes that are still names have size 1.
    """
    if axis_index_groups is not None:
        raise cx.unsupported("it reduces over groups of an axis")
    dims = [axis for axis in axes if not isinstance(axis, str)]
    return reduce(cx, REDUCERS[str(cx.equation.primitive.name)], x, dims)


@lowers(
    "ppermute",
    "reduce_scatter",
    "all_gather",
    "all_gather_invariant",
    "all_gather_reduced",
    "all_to_all",
)
def exchange(cx: Lowering, x: ir.Value, **params: Any) -> ir.Value:
    """Return ``x``, the data of the single device; some primitives add or drop a device dim.

    ``ppermute`` with an empty permutation sends nothing, and then the device receives zeros.
    """
    before, after = (tuple(avals[0].shape) for avals in (cx.avals_in, cx.avals_out))
    if len(params.get("perm", (0,))) == 0:
        return cx.expand(cx.const_like(0, x), after)
    return x if before == after else cx.reshape(x, after)


@lowers("axis_index")
def axis_index(cx: Lowering, *, axis_name: object) -> ir.Value:
    """Return 0, the index of the single device."""
    return cx.constant(np.zeros((), cx.avals_out[0].dtype))


@lowers("pvary", "pcast", "sharding_constraint", "mesh_cast", broadcasts=True)
def identity(cx: Lowering, *_: ir.Value, **params: object) -> list[Operand]:
    """Return the operands: these primitives only describe placement."""
    return list(cx.operands)
