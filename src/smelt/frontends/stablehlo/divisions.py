"""Read floor division and remainder of sizes, which JAX exports as calls of functions.

StableHLO divides by truncation. So JAX writes ``size // 2`` as a call of a function
``floor_divide`` of about ten operators, and ``size % 2`` as one of ``remainder``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import jax.numpy as jnp
import numpy as np

from smelt.frontends.stablehlo.operation import Operation
from smelt.frontends.stablehlo.patterns import exported_pattern
from smelt.frontends.stablehlo.sizes import Sizes, as_sizes, holds

_DIVISIONS: Mapping[str, tuple[Callable[..., Any], Callable[[Any, Any], Any]]] = {
    "floor_divide": (jnp.floor_divide, operator.floordiv),
    "remainder": (jnp.remainder, operator.mod),
}
"""For each function name in a module: the JAX function, and its operator on dims."""


def lower_division(cx: Any, op: Operation) -> Any:
    """Return the quotient or remainder of two scalar sizes; None if ``op`` is another call.

    The callee must have the body that JAX writes, and the divisor must be positive at all sizes.
    """
    functions = _DIVISIONS.get(op.callee())
    if functions is None or op.dtype not in (np.int32, np.int64) or op.shape:
        return None
    jax_function, divide_dims = functions
    pattern = exported_pattern(jax_function, op.dtype.name, (0, 0))
    operands = pattern.match([*op.view.results], cx.functions)
    sizes = [as_sizes(cx.value(operand)) for operand in operands]
    if not sizes or None in sizes:
        return None
    (dividend,), (divisor,) = (size.dims for size in sizes if size is not None)
    if not holds(lambda: divisor >= 1):
        return None
    result = divide_dims(dividend, divisor)
    if isinstance(result, int):
        return np.asarray(result, op.dtype)
    return Sizes([result], op.dtype, ())
