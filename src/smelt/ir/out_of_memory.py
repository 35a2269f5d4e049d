"""Turns running out of memory into an error that names the step."""

from __future__ import annotations

import errno
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from smelt.errors import ResourceLimit

P = ParamSpec("P")
R = TypeVar("R")


UNMAPPED = ("failed to map segment", "cannot allocate memory")
"""Messages of the loader of shared libraries when memory is exhausted."""


NO_REASON = "error return without exception set"
"""Python's message when an extension such as NumPy fails for lack of memory without an
exception."""


def is_out_of_memory(error: BaseException) -> bool:
    """True if ``error`` means that memory is exhausted, whatever its type and message."""
    if isinstance(error, SystemError):
        return NO_REASON in str(error)
    if isinstance(error, ImportError):
        return any(words in str(error).lower() for words in UNMAPPED)
    return isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM


def explains_memory(step: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate an API function: out of memory becomes ResourceLimit E512, which names ``step``."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        """Return ``function`` with out of memory reported as ResourceLimit E512."""

        @wraps(function)
        def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
            """Call ``function``; raises ResourceLimit E512 if memory runs out."""
            try:
                return function(*args, **kwargs)
            except (MemoryError, ImportError, OSError, SystemError) as error:
                if not is_out_of_memory(error):
                    raise
                raise ResourceLimit(
                    "E512",
                    f"{step} needs more memory than this process may have",
                    why=str(error) or "the system gave no more",
                    fix="raise the limits of the process, or keep weights in a file beside the "
                    "model (external data), which is not read into memory",
                ) from error

        return guarded

    return decorate
