"""Call a function of the user with typed arguments; its exceptions become error E113 with the
user's line."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Call:
    """The arguments of a call of a JAX function.

    ``positional`` and ``keyword`` are types of inputs, such as ``f32[B,4]``; ``static`` holds the
    values of arguments that are no inputs. ``x64`` turns 64-bit types on or off (None: JAX's own
    setting).
    """

    positional: Sequence[str] = ()
    keyword: Mapping[str, str] = field(default_factory=dict)
    static: Mapping[str, Any] = field(default_factory=dict)
    x64: bool | None = None

    @property
    def typed(self) -> bool:
        """True if the inputs have types, so that the function can be traced."""
        return bool(self.positional or self.keyword)

    def bound(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` as a function of arrays in the order of its model's inputs.

        Each array is cast to its type; without types, arrays are passed unchanged.
        """

        def run(*arrays: Any) -> Any:
            """Call the function with typed arrays; the last ones are keyword arguments."""
            from smelt.frontends.jax import compat, prng
            from smelt.frontends.jax.call import specs

            texts = (*self.positional, *self.keyword.values())
            values = list(arrays)
            if texts:
                values = [specs.typed(a, text) for a, text in zip(arrays, texts, strict=True)]
            count = len(values) - len(self.keyword)
            named = dict(zip(self.keyword, values[count:], strict=True))
            with compat.x64(compat.has_x64() if self.x64 is None else self.x64):
                return prng.without_keys(function(*values[:count], **named, **self.static))

        return run


AS_IS = Call()
"""A call with arrays as they are given."""
