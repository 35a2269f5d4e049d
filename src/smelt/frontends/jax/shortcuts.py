"""Work of JAX that costs a trace much and tells it nothing, left out.

What is traced stays the same, and so does what is accepted.
"""

from __future__ import annotations

import inspect
from types import BuiltinFunctionType
from typing import Any

from smelt.frontends.jax import frames
from smelt.frontends.jax.library_functions import PLACE_OF
from smelt.frontends.jax.patches import Patch, register
from smelt.frontends.jax.replacement import Function


def _place_of(original: Function) -> Function:
    """JAX prints a function without code, such as an equinox module with all its layers, to find
    out whether that is a built-in one of Python."""

    def place_of(fn: Any) -> Any:
        wrapped = inspect.unwrap(frames.without_partials(fn))
        unnamed = not hasattr(wrapped, "__code__") and not isinstance(wrapped, BuiltinFunctionType)
        return frames.NO_PLACE if unnamed else original(fn)

    return place_of


register(Patch(PLACE_OF.target, _place_of, parameters=PLACE_OF.parameters))
