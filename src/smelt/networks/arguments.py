"""Arguments of contractions, checked before work starts."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any

from smelt.errors import UsageError


def count_of(name: str, value: Any, least: int) -> int:
    """Return ``value`` as an int; raises UsageError E699 unless it is ``least`` or more."""
    try:
        number = index(value)
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise _wrong(name, value, f"{name} is a whole number of {least} or more", f"{name}={least}")
    return number


def check_function(name: str, value: Any) -> None:
    """Raise UsageError E699 unless ``value`` is a function or None."""
    if value is not None and not callable(value):
        fix = f"{name}=lambda done, count: print(done, count)"
        raise _wrong(name, value, f"{name} is a function of two numbers, or None", fix)


def file_of(name: str, value: Any) -> Path | None:
    """Return ``value`` as a path; raises UsageError E699 if it names no file."""
    if value is None:
        return None
    if not isinstance(value, str | PathLike) or not str(value) or isinstance(value, bytes):
        raise _wrong(name, value, f"{name} is the path of a file", f"{name}='state.npz'")
    return Path(value)


def items_of(name: str, value: Any, item: str) -> list[Any]:
    """Return the items of ``value``; raises UsageError E699 if it is no sequence of ``item``."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError("text is no sequence of items")
        return list(value)
    except TypeError as error:
        fix = f"give a list with one {item} for each operand"
        raise _wrong(name, value, f"{name} is a sequence", fix) from error


def numbers_of(name: str, value: Any) -> Sequence[int]:
    """Return ``value``, numbers of operands; raises UsageError E699 if they are no numbers."""
    try:
        return () if value is None else tuple(map(index, value))
    except TypeError as error:
        why = f"{name} is a sequence of numbers of operands, from 0 on"
        raise _wrong(name, value, why, f"{name}=[0]") from error


def check_hashable(name: str, value: Any) -> None:
    """Raise UsageError E699 if ``value`` cannot be part of a program that JAX traces."""
    try:
        hash(value)
    except TypeError as error:
        why = "JAX compares the options of programs, and this value has no hash"
        raise _wrong(name, value, why, f"give {name} as a text, a number or a tuple") from error


def _wrong(name: str, value: Any, why: str, fix: str) -> UsageError:
    """Return E699: an argument of a contraction is wrong."""
    text = repr(value)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return UsageError("E699", f"{name}={shown} cannot be used", why=why, fix=fix)
