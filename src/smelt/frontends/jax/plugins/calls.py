"""Calls, inlined: their names live on in the origin of the nodes."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from smelt.frontends.jax.lowering import Lowering
from smelt.frontends.jax.operand import Operand
from smelt.frontends.jax.registry import lowers


@lowers("jit", "pjit", "remat2", "checkpoint", broadcasts=True)
def jit(cx: Lowering, *_: ir.Value, jaxpr: Any, **params: Any) -> list[Operand]:
    return cx.inline(jaxpr, cx.operands, str(params.get("name", "")))


@lowers("custom_jvp_call", "custom_vjp_call", "closed_call", "core_call", broadcasts=True)
def call(cx: Lowering, *_: ir.Value, call_jaxpr: Any, **params: Any) -> list[Operand]:
    """Inference needs no derivative rules, so custom ones are dropped."""
    return cx.inline(call_jaxpr, cx.operands, str(params.get("name", "")))


@lowers("stop_gradient", "copy", "copy_p", "optimization_barrier", "reshard", broadcasts=True)
def same(cx: Lowering, *_: ir.Value, **params: Any) -> list[Operand]:
    """Means nothing to inference."""
    return list(cx.operands)


@lowers("device_put", broadcasts=True)
def device_put(
    cx: Lowering, *_: ir.Value, devices: object, srcs: object, copy_semantics: object
) -> list[Operand]:
    return list(cx.operands)
