"""Lower products of groups of rows, where each group has its own matrix."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from smelt.frontends.jax.compat import ragged_dot_general
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.registry import lowers


@lowers("ragged_dot_general")
def ragged(
    cx: Lowering,
    lhs: ir.Value,
    rhs: ir.Value,
    group_sizes: ir.Value,
    *,
    ragged_dot_dimension_numbers: Any,
    precision: object,
    preferred_element_type: Any,
    group_offset: object,
    out_sharding: object,
) -> list[Operand]:
    """Lower to one dense product that holds 0 for the rows of other groups.

    JAX does the same on a device without a kernel for it.
    """
    if group_offset is not None:
        raise cx.unsupported("it computes only some of the groups")

    def dense(*operands: Any) -> Any:
        """Return JAX's own expansion into ``dot_general``."""
        return ragged_dot_general(
            *operands,
            ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
            preferred_element_type=preferred_element_type,
        )

    return cx.inline_traced(dense)
