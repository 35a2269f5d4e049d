"""Compare parameters of flax linen with their initializers once, not once per layer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import FunctionType
from typing import Any

import jax
import numpy as np

from smelt.frontends.jax.patching.library_functions import FLAX_PARAMETER
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function

LIMIT = 4096
_compared: dict[Any, None] = {}
"""The comparisons done so far, at most ``LIMIT``."""


def _parameter_of(original: Function) -> Function:
    """Return a replacement of ``Scope.param`` that skips repeated comparisons.

    flax linen traces a parameter's initializer at every read, to compare shapes. The replacement
    compares equal initializers, arguments and shapes once.
    """

    def param(
        scope: Any,
        name: str,
        init_fn: Callable[..., Any],
        *args: Any,
        unbox: bool = True,
        **keywords: Any,
    ) -> Any:
        """Return the parameter; compare it with its initializer only the first time."""
        comparison = None if keywords else _comparison(scope, name, init_fn, args)
        if comparison is None or comparison not in _compared:
            value = original(scope, name, init_fn, *args, unbox=unbox, **keywords)
            if comparison is not None:
                _remember(comparison)
            return value
        scope.reserve(name, "params")
        value = scope.get_variable("params", name)
        return _unboxed(value) if unbox else value

    return param


def _comparison(scope: Any, name: str, init_fn: Any, args: tuple[Any, ...]) -> Any:
    """Return the initializer, its arguments and the parameter's shapes as a key for ``_compared``.

    Returns None if there is no such parameter, or if the initializer cannot be compared.
    """
    if not scope.has_variable("params", name):
        return None
    leaves = jax.tree.leaves(_unboxed(scope.get_variable("params", name)))
    try:
        comparison = (
            _comparable(init_fn),
            _comparable(args),
            tuple(np.shape(leaf) for leaf in leaves),
        )
        hash(comparison)
    except (RecursionError, TypeError, ValueError):
        return None  # The initializer holds itself, a mutable object, or an unset variable.
    return comparison


def _comparable(item: Any) -> Any:
    """Return an object that is equal for two items of equal content.

    Closures and layers are created again for each call, so their content is compared.
    """
    if isinstance(item, FunctionType) and item.__closure__:
        cells = tuple(_comparable(cell.cell_contents) for cell in item.__closure__)
        return item.__code__, cells, _comparable(item.__defaults__)
    if isinstance(item, list | tuple):
        return type(item), *map(_comparable, item)
    if is_dataclass(item) and hasattr(item, "scope"):  # a layer of linen
        names = (field.name for field in fields(item) if field.name not in ("parent", "name"))
        return type(item), *(_comparable(getattr(item, name)) for name in names)
    return item


def _remember(comparison: Any) -> None:
    """Record a comparison; forget all of them when ``LIMIT`` is reached."""
    if len(_compared) >= LIMIT:
        _compared.clear()
    _compared[comparison] = None


def _unboxed(value: Any) -> Any:
    """Return ``value`` without the metadata boxes of flax."""
    from flax.core import meta

    return meta.unbox(value)


register(
    Patch(FLAX_PARAMETER.target, _parameter_of, optional=True, parameters=FLAX_PARAMETER.parameters)
)
