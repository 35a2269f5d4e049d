"""Lower a marked call to the call of an ONNX function, and inline all other calls.

The provenance of inlined nodes keeps the names of their calls.
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
    """Lower a jitted call to the ONNX function call that its mark requests.

    A call without a mark is inlined.
    """
    name = str(params.get("name", ""))
    mark = marks.read_mark(name)
    if mark is None:
        return cx.inline(jaxpr, cx.operands, name)
    pairs = zip(cx.operands, cx.equation.invars, strict=True)
    return bodies.call(
        cx, mark, jaxpr, [cx.broadcast_operand(operand, atom) for operand, atom in pairs]
    )


@lowers(*(CALLS.keys() - {"jit", "pjit", "shard_map"}), broadcasts=True)
def call(cx: Lowering, *_: ir.Value, **params: Any) -> list[Operand]:
    """Inline the call; its rules for derivatives, batching and memory are dropped."""
    return cx.inline(params[CALLS[cx.equation.primitive.name]], cx.operands, params.get("name", ""))


@lowers(
    "stop_gradient", "copy", "copy_p", "optimization_barrier", "name", "reshard", broadcasts=True
)
def identity(cx: Lowering, *_: ir.Value, **params: Any) -> list[Operand]:
    """Return the operands: these primitives have no effect on inference."""
    return list(cx.operands)


@lowers("device_put", broadcasts=True)
def device_put(
    cx: Lowering, *_: ir.Value, devices: object, srcs: object, copy_semantics: object
) -> list[Operand]:
    """Return the operands: a model has one device."""
    return list(cx.operands)
