"""Skip work of JAX that costs trace time and does not change the result."""

from __future__ import annotations

import inspect
from types import BuiltinFunctionType
from typing import Any

from smelt.frontends.jax import frames
from smelt.frontends.jax.patching.library_functions import SOURCE_INFO
from smelt.frontends.jax.patching.patches import Patch, register
from smelt.frontends.jax.patching.replacement import Function


def _source_info(original: Function) -> Function:
    """Return a replacement of ``fun_sourceinfo`` that does not print functions without code.

    JAX prints such a function, for example an equinox module with all of its layers, to find out
    whether it is a builtin of Python.
    """

    def source_info(fn: Any) -> Any:
        """Return file and line of ``fn``, or ``NO_PLACE`` for an object without code."""
        wrapped = inspect.unwrap(frames.without_partials(fn))
        unnamed = not hasattr(wrapped, "__code__") and not isinstance(wrapped, BuiltinFunctionType)
        return frames.NO_PLACE if unnamed else original(fn)

    return source_info


register(Patch(SOURCE_INFO.target, _source_info, parameters=SOURCE_INFO.parameters))
