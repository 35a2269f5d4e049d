"""Tables that an expression looks into: ``table[size]``, ``table.get(size)``, ``size in table``.

Python finds a key by its hash, and the hash of a symbolic size is that of no number: without a
word, a table of numbers would have no such key. So whoever hashes asks which numbers it could be.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any

_NAMES = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF")
"""How the instructions begin that load what has a name; some load two."""

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_WRITTEN = ("BUILD_MAP", "BUILD_CONST_KEY_MAP", "BUILD_SET")


def numbers_looked_among(frame: FrameType) -> Iterator[int]:
    """The integers among the keys of the sets and dicts in the expression that ``frame`` computes,
    alone or in tuples. Of tables that the expression itself writes, all its integers."""
    parts = _parts(frame)
    is_written = any(part.opname in _WRITTEN for part in parts)
    names = {**frame.f_globals, **frame.f_locals}
    value: Any = None
    for part in parts:
        if part.opname.startswith(_NAMES):
            given = part.argval if isinstance(part.argval, tuple) else (part.argval,)
            for name in given:
                value = names.get(name)
                yield from _keys(value)
        elif part.opname in _ATTRIBUTES:
            value = inspect.getattr_static(value, part.argval, None)
            yield from _keys(value)
        elif part.opname.startswith(("LOAD_CONST", "LOAD_SMALL_INT")):
            value = part.argval
            yield from _integers(value) if is_written else _keys(value)


def _parts(frame: FrameType) -> list[dis.Instruction]:
    """The instructions of the expression that ``frame`` computes, in their order."""
    instructions = list(dis.get_instructions(frame.f_code))
    at = next(each for each in instructions if each.offset >= frame.f_lasti)
    begin, end = _place(at)
    return [
        each
        for each in instructions
        if each.offset <= at.offset and begin <= _place(each)[0] and _place(each)[1] <= end
    ]


def _place(instruction: dis.Instruction) -> tuple[tuple[int, int], tuple[int, int]]:
    """Line and column where its source begins and ends; columns are 0 if Python lost them."""
    place = instruction.positions
    if place is None or place.lineno is None or place.end_lineno is None:
        return (0, 0), (0, 0)
    return (place.lineno, place.col_offset or 0), (place.end_lineno, place.end_col_offset or 0)


def _keys(value: Any) -> Iterator[int]:
    if isinstance(value, set | frozenset | dict):
        for key in value:
            yield from _integers(key)


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    elif isinstance(value, tuple | frozenset):
        for each in value:
            yield from _integers(each)
