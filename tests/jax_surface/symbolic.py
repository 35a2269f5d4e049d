"""A callable of one array, converted once for any leading size."""

from __future__ import annotations

from typing import Any

import jax
import jax.export
import numpy as np
from jax_surface.arguments import Arguments

import smelt

TYPES = {"float32": "f32", "float64": "f64", "int32": "i32", "bool": "bool"}


def applies(arguments: Arguments) -> bool:
    """True for a single array with a leading dim that can be 2 as well as its own size."""
    if len(arguments.arrays) != 1:
        return False
    array = arguments.values[arguments.arrays[0]]
    return array.ndim >= 1 and array.shape[0] > 2 and str(array.dtype) in TYPES


def traced(function: Any, arguments: Arguments, wide: bool) -> Any:
    """The model with its leading dim named; raises what JAX or smelt raises."""
    array = arguments.values[arguments.arrays[0]]
    dims = ",".join(("B", *map(str, array.shape[1:])))
    return smelt.trace(function, f"{TYPES[str(array.dtype)]}[{dims}]", x64=wide)


def in_jax(function: Any, arguments: Arguments) -> Any:
    """The results by JAX's own shapes for a leading size B; None if it takes no symbol there."""
    array = arguments.values[arguments.arrays[0]]
    (size,) = jax.export.symbolic_shape("B")
    spec = jax.ShapeDtypeStruct((size, *array.shape[1:]), array.dtype)
    try:
        return jax.eval_shape(function, spec)
    except Exception:  # noqa: BLE001 - JAX may refuse a symbol in any way it likes
        return None


def is_misjudged(function: Any, arguments: Arguments) -> bool:
    """True if JAX itself computes another shape when the size is a symbol.

    A symbol counts as true, so a function that asks ``if size % 8`` goes on as if there were a rest.
    """
    found = in_jax(function, arguments)
    for array in inputs(arguments):
        try:
            wanted = jax.eval_shape(function, array)
        except Exception:  # noqa: BLE001 - JAX may refuse this size in any way it likes
            continue
        pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=False)
        if any(_sizes(a.shape, len(array)) != b.shape for a, b in pairs):
            return True
    return False


def _sizes(shape: tuple[Any, ...], size: int) -> tuple[int, ...]:
    return tuple(d if isinstance(d, int) else int(d._evaluate({"B": size})) for d in shape)


def inputs(arguments: Arguments) -> list[np.ndarray]:
    """The array whole, and its first two rows."""
    array = arguments.values[arguments.arrays[0]]
    return [array, array[:2]]
