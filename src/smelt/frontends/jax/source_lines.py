"""Source lines of equations: the user's file and line, and the names of the calls around them."""

from __future__ import annotations

import inspect
import os
import sysconfig
import traceback
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

from smelt.frontends.jax import compat, frames
from smelt.ir.provenance import Origin

_OWN = str(Path(__file__).parents[2])
"""The folder of smelt, whose frames are not the user's."""

_PASS_CALLS_ON = ("arguments.py", "bindings.py", "patches.py", "replacement.py")
"""Files of smelt that only forward calls."""

_PYTHON = ("<frozen ", sysconfig.get_path("stdlib") + os.sep)
"""Path prefixes of Python's standard library."""


def place(equation: compat.Equation) -> str:
    """Return ``model.py:41 in whiten``, or an empty string if no user code made ``equation``."""
    frame = frames.user_frame(equation)
    if frame is None:
        return ""
    path, line, function = frame
    return f"{_relative_path(path)}:{line} in {function}"


def raised_at(error: BaseException) -> str:
    """Return the innermost user line in the traceback of ``error``, or an empty string."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        is_generated = frame.filename == "<string>" and frame.name.startswith(
            "__"
        )  # by dataclasses
        if _is_of_user(frame.filename) and not is_generated:
            return f"{_relative_path(frame.filename)}:{frame.lineno} in {frame.name}"
    return ""


def is_own(error: BaseException) -> bool:
    """True if smelt's own code raised ``error``.

    False for files that only forward a call, because a wrong call fails there.
    """
    path = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    return str(path).startswith(_OWN) and path.name not in _PASS_CALLS_ON


def defined_at(fn: Callable[..., Any]) -> str:
    """Return where ``fn`` is defined, as ``model.py:41 in whiten``.

    Empty if no user file defines it.
    """
    function = inspect.unwrap(frames.without_partials(fn))
    called = function if hasattr(function, "__code__") else type(function).__call__
    code = getattr(called, "__code__", None)
    if code is None or not _is_of_user(code.co_filename):
        return ""
    return f"{_relative_path(code.co_filename)}:{code.co_firstlineno} in {code.co_name}"


def _is_of_user(path: str) -> bool:
    """True for a file outside of smelt, Python's library, JAX and other installed packages."""
    return not path.startswith((_OWN, *_PYTHON)) and frames.is_user_file(path)


@lru_cache(maxsize=4096)
def _relative_path(path: str) -> str:
    """Return ``path`` relative to the current folder if it lies below it."""
    working_folder = os.getcwd() + os.sep  # noqa: PTH109 - a string prefix is wanted
    return path.removeprefix(working_folder)


class Call:
    """The inlined calls around an equation: their names, and the source line of its nodes.

    JAX traces its own jitted functions (``relu``) once and reuses the jaxpr, so the jaxpr has the
    source lines of the first call. For later calls, ``fixed`` is the source line of the call.
    """

    def __init__(self, names: tuple[str, ...] = (), fixed: str | None = None) -> None:
        """Stand for the calls ``names`` around an equation; ``fixed`` replaces all source lines."""
        self.names = names
        self.fixed = fixed
        self._origins: dict[tuple[str, str], Origin] = {}

    def place(self, equation: compat.Equation) -> str:
        """Return the source line for ``equation``."""
        return self.fixed if self.fixed is not None else place(equation)

    def origin(self, equation: compat.Equation) -> Origin:
        """Return the provenance of the nodes of ``equation``: source line and names of calls."""
        line, scopes = self.place(equation), frames.name_stack(equation)
        cached = self._origins.get((line, scopes))
        if cached is None:
            names = [*self.names, scopes] if scopes else self.names
            stack = "/".join(names)
            source = f"{line} [{stack}]" if stack else line
            cached = Origin(sources=(source,) if source else ())
            self._origins[line, scopes] = cached
        return cached

    def inner(self, equation: compat.Equation, body: compat.Jaxpr, name: str) -> Call:
        """Return the calls around an equation of ``body``, which ``equation`` calls."""
        names = (*self.names, name) if name else self.names
        fixed = self.fixed
        if fixed is None and not frames.is_user_code(body):
            fixed = place(equation) or None
        return Call(names, fixed)
