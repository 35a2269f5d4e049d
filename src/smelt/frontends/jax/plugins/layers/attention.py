"""``jax.nn.dot_product_attention`` as one equation, and as one operator if there is no mask.

ONNX's Attention adds the mask to the scores, so a masked NaN score stays NaN. JAX selects by the
mask, so a mask becomes a Where here, which passes may fuse. JAX traces other calls as usual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir

from smelt.frontends.jax import compat
from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.patching.bindings import Binding, Call, binds
from smelt.frontends.jax.patching.library_functions import JAX_ATTENTION
from smelt.frontends.jax.registry import lowers

OPSET = 23
LOW = float(np.float32(-0.7 * np.finfo(np.float32).max))
"""JAX's replacement of a masked score; a row whose keys are all masked averages the values."""

_attention = jax.nn.dot_product_attention


@lowers("jax.attention")
def attention(
    cx: Lowering,
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    *mask: ir.Value,
    scale: float,
) -> ir.Value | list[Operand]:
    """Lower attention of ``q [B, S, H, D]``, ``k`` and ``v [B, T, H, D]`` to Attention or to nodes.

    Attention takes ``[B, S, H*D]``. With a mask, or before opset 23, the result is five nodes. If a
    size may be 0, JAX's own function is traced.
    """
    if not cx.is_never_empty():
        return cx.inline_traced(partial(_reference, scale=scale))
    if mask or cx.opset < OPSET:
        heads_first = [cx.transpose(value, (0, 2, 1, 3)) for value in (q, k, v)]
        result = attention_nodes(cx, *heads_first, *mask, scale=scale, low=LOW)
        return cx.transpose(result, (0, 2, 1, 3))
    batch, length, heads, size = cx.avals_in[0].shape
    rows = [
        cx.reshape(value, (*aval.shape[:2], heads * size))
        for value, aval in zip((q, k, v), cx.avals_in, strict=True)
    ]
    result = cx.op("Attention", *rows, scale=scale, q_num_heads=heads, kv_num_heads=heads)
    return cx.reshape(result, (batch, length, heads, size))


def attention_nodes(
    cx: Lowering,
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    *mask: ir.Value,
    scale: float,
    low: float,
) -> ir.Value:
    """Return attention of ``[B, H, S, D]`` as MatMul, Mul, Where, Softmax and MatMul.

    ``low`` replaces the scores that the mask excludes.
    """
    scores = cx.op("MatMul", q, cx.transpose(k, (0, 1, 3, 2)))
    scores = cx.op("Mul", scores, cx.constant(np.asarray(scale, np.float32)))
    if mask:
        scores = cx.op("Where", mask[0], scores, cx.constant(np.asarray(low, np.float32)))
    return cx.op("MatMul", cx.op("Softmax", scores, axis=-1), v)


def _reference(q: Any, k: Any, v: Any, *mask: Any, scale: float) -> Any:
    """Return the result of JAX's own function."""
    return _attention(q, k, v, mask=mask[0] if mask else None, scale=scale)


def _query_type(q: compat.Aval, *operands: compat.Aval, **params: Any) -> compat.Aval:
    """Return the result type: shape and dtype of ``q``."""
    return compat.ShapedArray(q.shape, q.dtype)


def _arguments(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: bool = False,
    **others: Any,
) -> Call | None:
    """Return operands and scale of a call that the operator covers, None for any other call.

    It covers float32, as many heads for keys as for queries, and a mask or causality or both.
    """
    if any(other is not None and other is not False for other in (bias, *others.values())):
        return None
    operands = (query, key, value)
    if not all(isinstance(x, jax.Array) and x.dtype == np.float32 for x in operands):
        return None
    shapes: list[Sequence[Dim]] = [np.shape(x) for x in operands]
    if any(len(shape) != 4 for shape in shapes) or shapes[1] != shapes[2]:
        return None
    (batch, query_count, heads, head_size), (_, key_count, *_) = shapes[:2]
    if (batch, heads, head_size) != (shapes[1][0], *shapes[1][2:]) or not _are_positive(
        heads, head_size
    ):
        return None
    if mask is not None and not _is_mask_for(mask, (batch, heads, query_count, key_count)):
        return None
    scale = 1.0 / math.sqrt(head_size) if scale is None else scale
    if not isinstance(scale, float | int) or not 1e-30 < scale < 1e30:
        return None
    if is_causal:
        triangle = jnp.tril(jnp.ones((query_count, key_count), bool))[None, None]
        mask = triangle if mask is None else jnp.logical_and(mask, triangle)
    return (*operands, *(() if mask is None else (mask,))), {"scale": float(scale)}


def _are_positive(*dims: Dim) -> bool:
    """True if every dim is a positive int."""
    return all(isinstance(dim, int) and dim > 0 for dim in dims)


def _is_mask_for(mask: Any, shape: Sequence[Dim]) -> bool:
    """True for a boolean mask of rank 4 whose dims are each 1 or the dim of ``shape``."""
    if not isinstance(mask, jax.Array) or mask.dtype != np.bool_ or mask.ndim != 4:
        return False
    return all(dim in (1, size) for dim, size in zip(mask.shape, shape, strict=True))


binds(
    Binding(
        JAX_ATTENTION.target,
        "jax.attention",
        _query_type,
        _arguments,
        _reference,
        parameters=JAX_ATTENTION.parameters,
    )
)
