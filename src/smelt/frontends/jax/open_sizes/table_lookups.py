"""Find the tables that a Python expression indexes, as in ``table[size]`` or ``size in table``.

Python finds a key by its hash, and the hash of a symbolic size equals that of no number. A lookup
in a table of numbers would silently fail. So smelt's hash of a size first compares the size with
the integer keys of the table.
"""

from __future__ import annotations

import dis
import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any

_NAMES = ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_FAST", "LOAD_DEREF")
"""Prefixes of the instructions that load named variables; some load two at once."""

_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_TABLE_BUILDERS = ("BUILD_MAP", "BUILD_CONST_KEY_MAP", "BUILD_SET")


def integer_keys(frame: FrameType) -> Iterator[int]:
    """Yield the integer keys of the sets and dicts in the expression that ``frame`` evaluates.

    Integers inside of tuple keys count. If the expression itself builds a table, all integers in
    the expression are yielded.
    """
    instructions = _instructions_of_expression(frame)
    builds_table = any(instruction.opname in _TABLE_BUILDERS for instruction in instructions)
    names = {**frame.f_globals, **frame.f_locals}
    value: Any = None  # the value that the last instruction loads
    for instruction in instructions:
        operation, argument = instruction.opname, instruction.argval
        if operation.startswith(_NAMES):
            variables = argument if isinstance(argument, tuple) else (argument,)
            for name in variables:
                value = names.get(name)
                yield from _keys(value)
        elif operation in _ATTRIBUTES:
            value = inspect.getattr_static(value, argument, None)
            yield from _keys(value)
        elif operation.startswith(("LOAD_CONST", "LOAD_SMALL_INT")):
            value = argument
            yield from _integers(value) if builds_table else _keys(value)


def _instructions_of_expression(frame: FrameType) -> list[dis.Instruction]:
    """Return the instructions of the expression that ``frame`` evaluates, in order."""
    instructions = list(dis.get_instructions(frame.f_code))
    current = next(
        instruction for instruction in instructions if instruction.offset >= frame.f_lasti
    )
    begin, end = _span(current)
    return [
        instruction
        for instruction in instructions
        if instruction.offset <= current.offset
        and begin <= _span(instruction)[0]
        and _span(instruction)[1] <= end
    ]


def _span(instruction: dis.Instruction) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return ``(line, column)`` of the begin and the end of the instruction's source text.

    Both are (0, 0) if Python does not know them.
    """
    position = instruction.positions
    if position is None or position.lineno is None or position.end_lineno is None:
        return (0, 0), (0, 0)
    begin = position.lineno, position.col_offset or 0
    end = position.end_lineno, position.end_col_offset or 0
    return begin, end


def _keys(value: Any) -> Iterator[int]:
    """Yield the integer keys of ``value`` if it is a set or a dict."""
    if isinstance(value, set | frozenset | dict):
        for key in value:
            yield from _integers(key)


def _integers(value: Any) -> Iterator[int]:
    """Yield ``value`` if it is an int, or the ints in a tuple or frozenset."""
    if isinstance(value, int):
        yield value
    elif isinstance(value, tuple | frozenset):
        for item in value:
            yield from _integers(item)
