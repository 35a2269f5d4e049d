"""Read calls of functions that JAX exports for a primitive.

JAX lowers ``threefry2x32`` to a function of that name. smelt binds the primitive instead.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from jaxlib.mlir import ir

from smelt.frontends.stablehlo import jax_names
from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.patterns import exported_pattern
from smelt.frontends.stablehlo.sizes import as_array

PRIMITIVES: Mapping[str, Callable[..., Any]] = {"threefry2x32": jax_names.threefry2x32}
"""The primitives, by the names of their functions."""


def primitive_call(cx: Any, op: Operation) -> list[Any] | None:
    """Return the results of a call of a primitive's function; None for other calls.

    The body of the callee must be the one that JAX writes.
    """
    primitive = PRIMITIVES.get(op.callee())
    if primitive is None:
        return None
    ranks = tuple(ir.RankedTensorType(array.type).rank for array in _arrays(op))
    pattern = exported_pattern(primitive, op.dtype.name, ranks)
    operands = pattern.match([*op.view.results], cx.functions)
    return list(primitive(*[as_array(cx.value(x)) for x in operands])) if operands else None


def _arrays(op: Operation) -> list[Any]:
    """Return the operands with the element type of the result.

    The others are symbolic sizes, which JAX passes first.
    """
    element = op.element
    types = [str(ir.RankedTensorType(x.type).element_type) for x in op.view.operands]
    return [x for x, name in zip(op.view.operands, types, strict=True) if name == element]
