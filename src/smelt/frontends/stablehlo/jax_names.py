"""JAX names beyond its stable public API that reading exported functions needs.

Written for JAX 0.10.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import jax
import numpy as np
from jax import export
from jax._src import core
from jax._src.interpreters import mlir
from jax._src.lax import lax as lax_internal
from jax._src.lax import linalg, special, windowed_reductions
from jax.extend.core import primitives
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

Exported = export.Exported

TOTAL_ORDER: Mapping[str, Callable[..., Any]] = {
    "EQ": lax_internal.eq_to_p.bind,
    "LT": lax_internal.lt_to_p.bind,
    "LE": lax_internal.le_to_p.bind,
}
"""Comparisons in the total order: -0 is below 0, and NaN lies beyond the infinities."""

geqrf: Callable[..., Any] = linalg.geqrf
conv_general_dilated: Callable[..., Any] = primitives.conv_general_dilated_p.bind
threefry2x32: Callable[..., Any] = primitives.threefry2x32_p.bind
igamma_grad_a: Callable[..., Any] = special.igamma_grad_a


def dim_value(dim: Any) -> Any:
    """Return a symbolic dim as an array."""
    return core.dimension_as_value(dim)


def limits(dtype: Any) -> tuple[Any, Any]:
    """Return the lowest and the highest value of ``dtype``; infinities if the type has them."""
    if np.dtype(dtype) == np.bool_:
        return False, True
    if jax.numpy.issubdtype(dtype, jax.numpy.floating):
        info = jax.numpy.finfo(dtype)
        infinite = bool(np.isinf(np.asarray(np.inf).astype(dtype)))
        return (-np.inf, np.inf) if infinite else (info.min, info.max)
    integers = jax.numpy.iinfo(dtype)
    return integers.min, integers.max


def select_and_scatter_add(*operands: Any) -> Any:
    """Return the gradient of max or min pooling."""
    scatter: Callable[..., Any] = windowed_reductions._select_and_scatter_add
    return scatter(*operands)


@lru_cache(maxsize=8)
def module_of(exported: Any) -> Any:
    """Return the MLIR module of ``exported``; the last eight modules are cached."""
    return read_module(exported)


def read_module(exported: Any) -> Any:
    """Return the module of ``exported`` as MLIR; its context lives as long as the module."""
    with mlir.make_ir_context() as context:
        return stablehlo.deserialize_portable_artifact(context, exported.mlir_module_serialized)


def functions_of(module: Any) -> dict[str, Any]:
    """Return the functions of ``module`` by name."""
    views = [view.operation for view in module.body.operations]
    return {str(f.attributes["sym_name"].value): f for f in views if f.name == "func.func"}


def splat_text(constant: Any) -> str:
    """Return the number that a splat constant repeats, as MLIR prints it with its type.

    Empty for other constants, and for complex ones, which MLIR for Python cannot read.
    """
    if "complex" in str(constant.results[0].type):
        return ""
    numbers = constant.attributes["value"]
    is_splat = isinstance(numbers, ir.DenseElementsAttr) and numbers.is_splat
    return str(numbers.get_splat_value()) if is_splat else ""


def splat_texts(module: Any) -> set[str]:
    """Return ``splat_text`` of each constant in ``module``, such as ``5.0E-1 : f32``."""
    texts: set[str] = set()

    def add_text(op: Any) -> Any:
        """Add the text of ``op`` if it is a constant."""
        if op.name == "stablehlo.constant":
            texts.add(splat_text(op))
        return ir.WalkResult.ADVANCE

    module.operation.walk(add_text)
    return texts
