"""Products of groups of rows, each group with its own matrix."""

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
    """Return one dense product in which rows of other groups are 0, as JAX does without a
    kernel."""
    if group_offset is not None:
        raise cx.unsupported("it computes only some of the groups")

    def dense(*operands: Any) -> Any:
        return ragged_dot_general(
            *operands,
            ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
            preferred_element_type=preferred_element_type,
        )

    return cx.inline_traced(dense)
