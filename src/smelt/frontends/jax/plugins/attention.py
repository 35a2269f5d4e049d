"""``jax.nn.dot_product_attention``: one equation, and one operator where ONNX has it.

What is masked is as in ``fuse_attention``, which makes the same of attention that is written out:
a finite number is added beside which every score vanishes, so that a row without keys is the
average of all. Other calls are traced as they are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
import onnx_ir as ir

from smelt.frontends.jax import compat
from smelt.frontends.jax.bindings import Binding, Call, binds
from smelt.frontends.jax.compat import Dim
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.registry import lowers
from smelt.ir.shapes import is_positive

OPSET = 23
LOW = float(np.float32(-0.7 * np.finfo(np.float32).max))
"""What JAX puts in place of a score that a mask hides."""

_attention = jax.nn.dot_product_attention


@lowers("jax.attention")
def attention(
    cx: Lowering,
    q: ir.Value,
    k: ir.Value,
    v: ir.Value,
    *mask: ir.Value,
    scale: float,
    is_causal: bool,
) -> ir.Value | list[Operand]:
    """All are B,S,H,D; the operator takes the heads inside: B,S,H*D."""
    batch, length, heads, size = cx.avals_in[0].shape
    if cx.opset < OPSET or not is_never_empty(cx):
        return cx.inline_traced(partial(_reference, scale=scale, is_causal=is_causal))
    rows = [
        cx.reshape(value, (*aval.shape[:2], heads * size))
        for value, aval in zip((q, k, v), cx.avals_in, strict=False)
    ]
    if mask:
        zero, low = (cx.constant(np.asarray(number, np.float32)) for number in (0, LOW))
        rows.append(cx.op("Where", mask[0], zero, low))
    result = cx.op(
        "Attention",
        *rows,
        scale=scale,
        q_num_heads=heads,
        kv_num_heads=heads,
        is_causal=int(is_causal) or None,
    )
    return cx.reshape(result, (batch, length, heads, size))


def is_never_empty(cx: Lowering) -> bool:
    """True if no operand can have a size of 0, of which runtimes have no attention."""
    dims = (dim for aval in cx.avals_in for dim in aval.shape)
    return all(is_positive(cx.symbols.dim(dim)) for dim in dims)


def _reference(q: Any, k: Any, v: Any, *mask: Any, scale: float, is_causal: bool) -> Any:
    hidden = mask[0] if mask else None
    return _attention(q, k, v, mask=hidden, scale=scale, is_causal=is_causal)


def _like_queries(q: compat.Aval, *operands: compat.Aval, **params: Any) -> compat.Aval:
    return compat.ShapedArray(q.shape, q.dtype)


def _call(
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
    """None unless nothing but a mask or causality is asked for, of equal heads in float32."""
    if bias is not None or (is_causal and mask is not None):
        return None
    if any(other is not None and other is not False for other in others.values()):
        return None
    operands = (query, key, value)
    if not all(isinstance(x, jax.Array) and x.dtype == np.float32 for x in operands):
        return None
    shapes: list[Sequence[Dim]] = [np.shape(x) for x in operands]
    if any(len(shape) != 4 for shape in shapes) or shapes[1] != shapes[2]:
        return None
    (batch, length, heads, size), (_, keys, *_) = shapes[:2]
    if (batch, heads, size) != (shapes[1][0], *shapes[1][2:]) or not _are_numbers(heads, size):
        return None
    if is_causal and length != keys:
        return None
    if mask is not None and not _is_full(mask, (batch, heads, length, keys)):
        return None
    scale = 1.0 / math.sqrt(size) if scale is None else scale
    if not isinstance(scale, float | int) or not 1e-30 < scale < 1e30:
        return None
    masks = () if mask is None else (mask,)
    return (*operands, *masks), {"scale": float(scale), "is_causal": bool(is_causal)}


def _are_numbers(*dims: Dim) -> bool:
    return all(isinstance(dim, int) and dim > 0 for dim in dims)


def _is_full(mask: Any, shape: Sequence[Dim]) -> bool:
    """True for a mask of the last two dims of ``shape``, and of its others or 1."""
    if not isinstance(mask, jax.Array) or mask.dtype != np.bool_ or mask.ndim != 4:
        return False
    pairs = zip(mask.shape[:2], shape[:2], strict=True)
    return mask.shape[2:] == tuple(shape[2:]) and all(dim in (1, of) for dim, of in pairs)


binds(Binding("jax.nn:dot_product_attention", "jax.attention", _like_queries, _call, _reference))
