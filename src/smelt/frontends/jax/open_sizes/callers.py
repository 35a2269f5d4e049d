"""Decide whose code calls a replaced method of JAX: JAX itself, a library or the user."""

from __future__ import annotations

import inspect
import os
import sysconfig
from enum import Enum, auto
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType

import jax
import jaxlib

from smelt.frontends.jax import frames

_SMELT = str(Path(__file__).parents[3]) + os.sep
_JAX = (*(f"{folder}{os.sep}" for folder in (*jax.__path__, *jaxlib.__path__)), _SMELT)
_INTERMEDIATE = ("callers.py", "replacement.py", "open_comparisons.py")
"""Files of smelt whose frames lie between the caller and the replacement."""

_PYTHON = ("<frozen ", sysconfig.get_path("stdlib") + os.sep)


class Caller(Enum):
    """Whose code makes a call. smelt counts as JAX, because it knows JAX's conventions."""

    JAX = auto()
    LIBRARY = auto()
    USER = auto()


def calling_frame() -> FrameType:
    """Return the frame that calls the replaced method.

    Frames of Python's standard library are skipped: the code that calls them counts.
    """
    frame = inspect.currentframe()
    assert frame is not None  # Every Python that runs JAX has frames.
    while frame.f_back is not None and _is_transparent(frame.f_code):
        frame = frame.f_back
    return frame


def caller_of(frame: FrameType) -> Caller:
    """Return whose code ``frame`` runs."""
    return _caller_at(frame.f_code.co_filename)


@lru_cache(maxsize=4096)
def _is_transparent(code: CodeType) -> bool:
    """True for code whose own caller counts: replacements of smelt, and the standard library."""
    path = code.co_filename
    if path == "<string>":
        return code.co_name.startswith("__")  # Methods that dataclasses writes.
    if path.startswith(_SMELT):
        return path.endswith(_INTERMEDIATE)
    return path.startswith(_PYTHON) and "-packages" not in path


@lru_cache(maxsize=4096)
def _caller_at(path: str) -> Caller:
    """Return whose code the file ``path`` holds."""
    if path.startswith(_JAX):
        return Caller.JAX
    return Caller.USER if frames.is_user_file(path) else Caller.LIBRARY
