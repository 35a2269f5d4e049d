"""Calls: of a function of the model where one is marked, else inlined.

The names of inlined ones live on in the origin of their nodes.
"""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from smelt.frontends.jax.functions import bodies, marks
from smelt.frontends.jax.interpreter import CALLS
from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.registry import lowers


@lowers("jit", "pjit", broadcasts=True)
def jit(cx: Lowering, *_: ir.Value, jaxpr: Any, **params: Any) -> list[Operand]:
    name = str(params.get("name", ""))
    mark = marks.read(name)
    if mark is None:
        return cx.inline(jaxpr, cx.operands, name)
    pairs = zip(cx.operands, cx.equation.invars, strict=True)
    return bodies.call(
        cx, mark, jaxpr, [cx.broadcast_operand(operand, atom) for operand, atom in pairs]
    )


@lowers(*(CALLS.keys() - {"jit", "pjit", "shard_map"}), broadcasts=True)
def call(cx: Lowering, *_: ir.Value, **params: Any) -> list[Operand]:
    """Inference needs no rules for derivatives, batches and memory, so they are dropped."""
    return cx.inline(params[CALLS[cx.equation.primitive.name]], cx.operands, params.get("name", ""))


@lowers(
    "stop_gradient", "copy", "copy_p", "optimization_barrier", "name", "reshard", broadcasts=True
)
def same(cx: Lowering, *_: ir.Value, **params: Any) -> list[Operand]:
    """Means nothing to inference."""
    return list(cx.operands)


@lowers("device_put", broadcasts=True)
def device_put(
    cx: Lowering, *_: ir.Value, devices: object, srcs: object, copy_semantics: object
) -> list[Operand]:
    return list(cx.operands)
