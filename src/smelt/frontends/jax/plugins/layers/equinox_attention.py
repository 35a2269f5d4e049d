"""equinox attention of one head, which layers map over heads and users over batches.

The mapped dims become the leading dims of one operator.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx_ir as ir

from smelt.frontends.jax import compat
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.patching.bindings import Binding, Call, binds
from smelt.frontends.jax.patching.library_functions import EQUINOX_ATTENTION
from smelt.frontends.jax.plugins.layers.attention import OPSET, attention_nodes
from smelt.frontends.jax.plugins.layers.layer_norm import with_rank_of
from smelt.frontends.jax.registry import lowers

LOW = float(np.finfo(np.float32).min)
"""equinox's replacement of a masked score."""


@lowers("equinox.attention")
def attention(
    cx: Lowering, q: ir.Value, k: ir.Value, v: ir.Value, *mask: ir.Value
) -> ir.Value | list[Operand]:
    """Lower to Attention with two leading dims, batch and heads; with a mask, to nodes."""
    missing = 4 - len(cx.avals_in[0].shape)
    if missing < 0 or not cx.is_never_empty():
        return cx.inline_traced(_reference)
    operands = [cx.unsqueeze(value, range(missing)) for value in (q, k, v)]
    scale = 1 / math.sqrt(cx.avals_in[0].shape[-1])
    if mask or cx.opset < OPSET:
        result = attention_nodes(cx, *operands, *mask, scale=scale, low=LOW)
    else:
        result = cx.op("Attention", *operands, scale=scale)
    return cx.squeeze(result, range(missing))


def _reference(q: jax.Array, k: jax.Array, v: jax.Array, *mask: jax.Array) -> Any:
    """Return equinox's result for ``q [..., s, d]``, ``k`` and ``v [..., S, d]``."""
    logits = jnp.einsum("...sd,...Sd->...sS", q / math.sqrt(q.shape[-1]), k)
    if mask:
        logits = jnp.where(with_rank_of(mask[0], logits), logits, jnp.finfo(logits.dtype).min)
    return jnp.einsum("...sS,...Sd->...sd", jax.nn.softmax(logits), v)


def _result_type(q: compat.Aval, k: compat.Aval, v: compat.Aval, *mask: compat.Aval) -> compat.Aval:
    """Return the result type: ``[..., S, D]`` of the queries with the last dim of the values."""
    return compat.ShapedArray((*q.shape[:-1], v.shape[-1]), q.dtype)


def _arguments(
    query: Any,
    key_: Any,
    value: Any,
    mask: Any = None,
    dropout: Any = None,
    *,
    key: Any = None,
    inference: bool | None = None,
) -> Call | None:
    """Return the operands; None for dropout, invalid calls and types other than float32."""
    operands = (query, key_, value)
    if not all(isinstance(x, jax.Array) and x.dtype == np.float32 for x in operands):
        return None
    shapes = [x.shape for x in operands]
    fitting = all(len(shape) == 2 for shape in shapes) and shapes[1][0] == shapes[2][0]
    if not fitting or shapes[0][1] != shapes[1][1]:
        return None
    if not all(isinstance(shape[1], int) and shape[1] > 0 for shape in shapes):
        return None
    if dropout is not None and not _is_off(dropout, inference):
        return None
    if mask is None:
        return operands, {}
    if not isinstance(mask, jax.Array) or mask.dtype != np.bool_:
        return None
    return ((*operands, mask), {}) if mask.shape == (shapes[0][0], shapes[1][0]) else None


def _is_off(dropout: Any, inference: bool | None) -> bool:
    """True if the layer's dropout does nothing: it is in inference mode, or its rate is 0."""
    inactive = dropout.inference if inference is None else inference
    return inactive is True or (isinstance(dropout.p, int | float) and dropout.p == 0)


def _batched(operands: Sequence[Any], dims: Sequence[int | None]) -> Sequence[Any] | None:
    """Return the operands with the dim that ``vmap`` maps in front; the mask may lack that dim.

    None if query, key or value lacks the dim: JAX then maps the layer's own code.
    """
    moved = [
        operand if dim is None else jnp.moveaxis(operand, dim, 0)
        for operand, dim in zip(operands, dims, strict=True)
    ]
    if any(dim is None for dim in dims[:3]):
        return None
    if len(dims) > 3 and dims[3] is not None:
        mask, rank = moved[3], moved[0].ndim
        ones = [1] * (rank - mask.ndim)
        moved[3] = mask.reshape((mask.shape[0], *ones, *mask.shape[1:]))
    return moved


binds(
    Binding(
        EQUINOX_ATTENTION.target,
        "equinox.attention",
        _result_type,
        _arguments,
        _reference,
        _batched,
        optional=True,
        parameters=EQUINOX_ATTENTION.parameters,
    )
)
