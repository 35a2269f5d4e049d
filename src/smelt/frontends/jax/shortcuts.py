"""Work of JAX and its libraries that costs a trace much and tells it nothing, left out.

What is traced stays the same, and so does what is accepted.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from types import BuiltinFunctionType
from typing import Any
from weakref import WeakKeyDictionary

import jax
import numpy as np

from smelt.frontends.jax import compat
from smelt.frontends.jax.patches import Function, Patch, register


def _place_of(original: Function) -> Function:
    """JAX prints a function without code, such as an equinox module with all its layers, to find
    out whether that is a built-in one of Python."""

    def place_of(fn: Any) -> Any:
        wrapped = inspect.unwrap(compat.without_partials(fn))
        unnamed = not hasattr(wrapped, "__code__") and not isinstance(wrapped, BuiltinFunctionType)
        return compat.NO_PLACE if unnamed else original(fn)

    return place_of


_compared: WeakKeyDictionary[Callable[..., Any], set[Any]] = WeakKeyDictionary()
"""What initializers of parameters were compared for: their arguments, and the shapes of values."""


def _parameter_of(original: Function) -> Function:
    """flax linen traces the initializer of a parameter again wherever a layer reads it, to compare
    shapes. Here, one initializer is compared once for equal arguments and shapes."""

    def param(
        scope: Any,
        name: str,
        init_fn: Callable[..., Any],
        *args: Any,
        unbox: bool = True,
        **keywords: Any,
    ) -> Any:
        question = None if keywords else _question(scope, name, args)
        if question is None or not _was_compared(init_fn, question):
            value = original(scope, name, init_fn, *args, unbox=unbox, **keywords)
            if question is not None:
                _note(init_fn, question)
            return value
        scope.reserve(name, "params")
        value = scope.get_variable("params", name)
        return _unboxed(value) if unbox else value

    return param


def _question(scope: Any, name: str, args: tuple[Any, ...]) -> Any:
    """What the comparison depends on; None if there is nothing to compare with."""
    if not scope.has_variable("params", name):
        return None
    leaves = jax.tree.leaves(_unboxed(scope.get_variable("params", name)))
    listed = tuple((list, *arg) if isinstance(arg, list) else arg for arg in args)
    return listed, tuple(np.shape(leaf) for leaf in leaves)


def _was_compared(init_fn: Any, question: Any) -> bool:
    try:
        return question in _compared.get(init_fn, ())
    except TypeError:  # Not every argument can be hashed, nor every function referred to weakly.
        return False


def _note(init_fn: Any, question: Any) -> None:
    with suppress(TypeError):
        _compared.setdefault(init_fn, set()).add(question)


def _unboxed(value: Any) -> Any:
    from flax.core import meta

    return meta.unbox(value)


register(Patch(compat.PLACE_OF, _place_of))
register(Patch("flax.core.scope:Scope.param", _parameter_of, optional=True))
