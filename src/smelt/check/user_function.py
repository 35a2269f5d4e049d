"""Call a function of the user; its exceptions become error E113 with the user's line."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from smelt.errors import SmeltError, UsageError
from smelt.runtime.interface import Value

_LIBRARIES = (
    str(Path(__file__).parents[1]),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
)


def call(function: Callable[..., Any], *inputs: Value, **named: Value) -> list[Value]:
    """Return the arrays that ``function`` returns, flattened; UsageError E113 if it raises."""
    try:
        # NumPy computes some operators of 16-bit floats in float32; JAX does not.
        if "jax" in sys.modules:
            from smelt.frontends.jax.element_types import halves_as_jax_arrays

            inputs = tuple(halves_as_jax_arrays(inputs))
        return flatten(function(*inputs, **named))
    except (SmeltError, MemoryError):
        raise
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        user_frames = [
            frame for frame in frames if not frame.filename.startswith((*_LIBRARIES, "<"))
        ]
        message = str(error).strip().partition("\n")[0]
        raise UsageError(
            "E113",
            f"your function raised {type(error).__name__}",
            at=f"{user_frames[-1].filename}:{user_frames[-1].lineno}" if user_frames else "",
            why=message or "the exception has no message",
            fix="call the function by itself with arrays of these shapes and types",
        ) from error


def flatten(result: object) -> list[Value]:
    """Return the arrays of nested tuples, lists and dicts in JAX's order: dict entries by key."""
    return list(_leaves(result))


def _leaves(result: object) -> Iterator[Value]:
    """Yield the arrays in ``result``; dict entries in the order of their keys."""
    if result is None:
        return
    if isinstance(result, Mapping):
        for key in sorted(result):
            yield from _leaves(result[key])
    elif isinstance(result, Sequence) and not isinstance(result, str | bytes):
        for item in result:
            yield from _leaves(item)
    else:
        yield np.asarray(result)
