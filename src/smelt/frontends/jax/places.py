"""Where equations come from: the user's file and line, and the names of the calls around it."""

from __future__ import annotations

import os
import traceback
from functools import lru_cache
from pathlib import Path

from smelt.frontends.jax import compat
from smelt.ir.provenance import Origin

_OWN = str(Path(__file__).parents[2])
"""The folder of smelt, whose frames are not the user's."""


def place(equation: compat.Equation) -> str:
    """``model.py:41 in whiten``, or an empty string if no user code made ``equation``."""
    frame = compat.user_frame(equation)
    if frame is None:
        return ""
    path, line, function = frame
    return f"{_short(path)}:{line} in {function}"


def raised_at(error: BaseException) -> str:
    """The line of the user's code that led to ``error``, or an empty string."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith(_OWN) and compat.is_user_file(frame.filename):
            return f"{_short(frame.filename)}:{frame.lineno} in {frame.name}"
    return ""


@lru_cache(maxsize=4096)
def _short(path: str) -> str:
    """``path`` from the current folder if it lies below it."""
    here = os.getcwd() + os.sep  # noqa: PTH109 - a string prefix is wanted
    return path.removeprefix(here)


class Call:
    """The inlined calls around an equation: names, and the line to blame.

    JAX traces a jitted function of its own (``relu``) once and reuses it, so lines inside it are
    those of its first caller. ``fixed`` holds the line of the call, which is used instead.
    """

    def __init__(self, names: tuple[str, ...] = (), fixed: str | None = None) -> None:
        self.names = names
        self.fixed = fixed
        self._origins: dict[tuple[str, str], Origin] = {}

    def place(self, equation: compat.Equation) -> str:
        """The line to blame for ``equation``."""
        return self.fixed if self.fixed is not None else place(equation)

    def origin(self, equation: compat.Equation) -> Origin:
        """The origin of the nodes that ``equation`` becomes, with the names of calls."""
        line, scopes = self.place(equation), compat.name_stack(equation)
        known = self._origins.get((line, scopes))
        if known is None:
            stack = "/".join((*self.names, *([scopes] if scopes else [])))
            source = f"{line} [{stack}]" if stack else line
            known = Origin(sources=(source,) if source else ())
            self._origins[line, scopes] = known
        return known

    def inner(self, equation: compat.Equation, body: compat.Jaxpr, name: str) -> Call:
        """The calls around an equation of ``body``, which ``equation`` calls."""
        names = (*self.names, name) if name else self.names
        fixed = self.fixed
        if fixed is None and not compat.is_user_code(body):
            fixed = place(equation) or None
        return Call(names, fixed)
