"""Work of JAX and its libraries that costs a trace much and tells it nothing, left out.

What is traced stays the same, and so does what is accepted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

import jax
import numpy as np

from smelt.frontends.jax import compat
from smelt.frontends.jax.library_functions import FLAX_PARAMETER, PLACE_OF
from smelt.frontends.jax.patches import Patch, register
from smelt.frontends.jax.replacement import Function


def _place_of(original: Function) -> Function:
    """JAX prints a function without code, such as an equinox module with all its layers, to find
    out whether that is a built-in one of Python."""

    def place_of(fn: Any) -> Any:
        wrapped = inspect.unwrap(compat.without_partials(fn))
        unnamed = not hasattr(wrapped, "__code__") and not isinstance(wrapped, BuiltinFunctionType)
        return compat.NO_PLACE if unnamed else original(fn)

    return place_of


LIMIT = 4096
_compared: dict[Any, None] = {}
"""What initializers of parameters were compared for; at most ``LIMIT`` of these."""


def _parameter_of(original: Function) -> Function:
    """flax linen traces the initializer of a parameter again wherever a layer reads it, to compare
    shapes. Here, equal initializers are compared once for equal arguments and shapes."""

    def param(
        scope: Any,
        name: str,
        init_fn: Callable[..., Any],
        *args: Any,
        unbox: bool = True,
        **keywords: Any,
    ) -> Any:
        question = None if keywords else _question(scope, name, init_fn, args)
        if question is None or question not in _compared:
            value = original(scope, name, init_fn, *args, unbox=unbox, **keywords)
            if question is not None:
                _note(question)
            return value
        scope.reserve(name, "params")
        value = scope.get_variable("params", name)
        return _unboxed(value) if unbox else value

    return param


def _question(scope: Any, name: str, init_fn: Any, args: tuple[Any, ...]) -> Any:
    """What the comparison depends on; None if there is none, or this cannot be told."""
    if not scope.has_variable("params", name):
        return None
    leaves = jax.tree.leaves(_unboxed(scope.get_variable("params", name)))
    try:
        question = _content(init_fn), _content(args), tuple(np.shape(leaf) for leaf in leaves)
        hash(question)
    except (RecursionError, TypeError, ValueError):
        return None  # It holds itself, something that changes, or a variable that is not set yet.
    return question


def _content(item: Any) -> Any:
    """``item`` as something that is equal for equal content: closures and layers are made anew."""
    if isinstance(item, FunctionType) and item.__closure__:
        cells = tuple(_content(cell.cell_contents) for cell in item.__closure__)
        return item.__code__, cells, _content(item.__defaults__)
    if isinstance(item, list | tuple):
        return type(item), *map(_content, item)
    if is_dataclass(item) and hasattr(item, "scope"):  # a layer of linen
        names = (field.name for field in fields(item) if field.name not in ("parent", "name"))
        return type(item), *(_content(getattr(item, name)) for name in names)
    return item


def _note(question: Any) -> None:
    if len(_compared) >= LIMIT:
        _compared.clear()
    _compared[question] = None


def _unboxed(value: Any) -> Any:
    from flax.core import meta

    return meta.unbox(value)


register(Patch(PLACE_OF.target, _place_of, parameters=PLACE_OF.parameters))
register(Patch(FLAX_PARAMETER.target, _parameter_of, True, FLAX_PARAMETER.parameters))
