"""Lower matrix products whose operands have one scale for each block of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx_ir as ir
from jax import lax

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.registry import lowers

ROWS = (((2,), (2,)), ((0,), (0,)))
"""Dimension numbers of a batched product of rows with rows."""


@lowers("scaled_dot")
def scaled_dot(
    cx: Lowering,
    *_: ir.Value,
    dimension_numbers: Any,
    preferred_element_type: Any,
) -> list[Operand]:
    """Lower to a product of scaled operands, which are rounded to bfloat16 as in JAX.

    The product is summed in float32.
    """

    def product(lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any) -> Any:
        """Return the product of ``lhs`` and ``rhs``, each multiplied by its scale."""
        lhs_axes, rhs_axes = dimension_numbers[0]
        scaled = (
            _scale_blocks(lhs, lhs_scale, lhs_axes, _to_bfloat16),
            _scale_blocks(rhs, rhs_scale, rhs_axes, _to_bfloat16),
        )
        return lax.dot_general(*scaled, dimension_numbers).astype(cx.avals_out[0].dtype)

    return cx.inline_traced(product)


@lowers("scaled_matmul_wrapper")
def scaled_matmul(cx: Lowering, *_: ir.Value, preferred_element_type: Any) -> list[Operand]:
    """Lower to a batched product ``[b, m, k] x [b, n, k] -> [b, m, n]`` in float32 throughout."""

    def product(lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any) -> Any:
        """Return the product of ``lhs`` and ``rhs``, each multiplied by its scale."""
        scaled = (
            _scale_blocks(lhs, lhs_scale, (2,), _unchanged),
            _scale_blocks(rhs, rhs_scale, (2,), _unchanged),
        )
        return lax.dot_general(*scaled, ROWS).astype(cx.avals_out[0].dtype)

    return cx.inline_traced(product)


def _scale_blocks(x: Any, scale: Any, axes: Sequence[int], rounded: Callable[[Any], Any]) -> Any:
    """Return ``x * scale`` in float32, rounded by ``rounded`` as its operands are.

    Along each of ``axes``, one element of ``scale`` applies to a block of elements of ``x``.
    """
    x, scale = rounded(x.astype(np.float32)), rounded(scale.astype(np.float32))
    for axis in axes:
        if scale.shape[axis] != x.shape[axis]:
            scale = jnp.repeat(scale, x.shape[axis] // scale.shape[axis], axis)
    return rounded(x * scale)


def _to_bfloat16(x: Any) -> Any:
    """Return ``x`` (float32) rounded to the precision of bfloat16."""
    return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)


def _unchanged(x: Any) -> Any:
    """Return ``x``: the rounding of a product that stays in float32."""
    return x
