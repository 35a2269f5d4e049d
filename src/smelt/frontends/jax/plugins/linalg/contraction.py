"""Lower ``dot_general`` to a ``smelt.DotGeneral`` node; passes later lower it for the target."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.registry import lowers


@lowers("dot_general")
def dot_general(
    cx: Lowering,
    lhs: ir.Value,
    rhs: ir.Value,
    *,
    dimension_numbers: Any,
    precision: object,
    preferred_element_type: Any,
    out_sharding: object,
) -> ir.Value:
    """Lower to DotGeneral; ``precision`` is ignored, because it only permits fewer bits.

    A sum over no elements becomes zeros here: ONNX Runtime's Einsum divides by that size.
    """
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    (out,) = cx.avals_out
    if 0 in (cx.avals_in[0].shape[axis] for axis in lhs_contracting):
        return cx.expand(cx.constant(np.zeros((), out.dtype)), out.shape)
    output = ir.DataType.from_numpy(np.dtype(out.dtype))
    return cx.op(
        "DotGeneral",
        lhs,
        rhs,
        domain="smelt",
        lhs_contracting=ints(lhs_contracting),
        rhs_contracting=ints(rhs_contracting),
        lhs_batch=ints(lhs_batch),
        rhs_batch=ints(rhs_batch),
        dtype=int(output),
    )


def ints(dims: Any) -> list[int] | None:
    """Return the dims as a list of ints; None if it is empty, because ONNX has no empty list."""
    return [int(dim) for dim in dims] or None
