"""Floor division and remainder of sizes, which JAX exports as functions of several operators."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.patterns import exported_pattern
from smelt.frontends.stablehlo.sizes import Sizes, as_sizes, holds

_ROUNDED_DOWN: Mapping[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "floor_divide": (jnp.floor_divide, operator.floordiv),
    "remainder": (jnp.remainder, operator.mod),
}
"""For each function name in a module: the JAX function, and its operator on dims."""


def lower_division(cx: Any, op: Operation) -> Any:
    """Return the result of a call that divides sizes; None for other calls.

    The callee must have the body that JAX writes.
    """
    functions = _ROUNDED_DOWN.get(op.callee())
    if functions is None or op.dtype not in (np.int32, np.int64) or op.shape:
        return None
    operands = exported_pattern(functions[0], op.dtype.name, (0, 0)).match(
        [*op.view.results], cx.functions
    )
    sizes = [as_sizes(cx.value(operand)) for operand in operands]
    if not sizes or None in sizes:
        return None
    (dividend,), (divisor,) = (size.dims for size in sizes if size is not None)
    if not holds(lambda: divisor >= 1):
        return None
    size = functions[1](dividend, divisor)
    return np.asarray(size, op.dtype) if isinstance(size, int) else Sizes([size], op.dtype, ())
