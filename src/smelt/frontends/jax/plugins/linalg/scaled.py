"""Matrix products with a scale for each block of a row."""

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
    """Round scaled numbers to bfloat16, as in JAX, and sum in single precision."""

    def product(lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any) -> Any:
        left, right = dimension_numbers[0]
        scaled = _scaled(lhs, lhs_scale, left, _short), _scaled(rhs, rhs_scale, right, _short)
        return lax.dot_general(*scaled, dimension_numbers).astype(cx.avals_out[0].dtype)

    return cx.inline_traced(product)


@lowers("scaled_matmul_wrapper")
def scaled_matmul(cx: Lowering, *_: ir.Value, preferred_element_type: Any) -> list[Operand]:
    """Compute in single precision throughout."""

    def product(lhs: Any, rhs: Any, lhs_scale: Any, rhs_scale: Any) -> Any:
        scaled = _scaled(lhs, lhs_scale, (2,), _same), _scaled(rhs, rhs_scale, (2,), _same)
        return lax.dot_general(*scaled, ROWS).astype(cx.avals_out[0].dtype)

    return cx.inline_traced(product)


def _scaled(x: Any, scale: Any, axes: Sequence[int], rounded: Callable[[Any], Any]) -> Any:
    """Return ``x`` times its scale, which is repeated over the blocks of ``axes``."""
    x, scale = rounded(x.astype(np.float32)), rounded(scale.astype(np.float32))
    for axis in axes:
        if scale.shape[axis] != x.shape[axis]:
            scale = jnp.repeat(scale, x.shape[axis] // scale.shape[axis], axis)
    return rounded(x * scale)


def _short(x: Any) -> Any:
    """Return ``x`` rounded to the precision of bfloat16."""
    return lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7)


def _same(x: Any) -> Any:
    return x
