"""Lines of source that operations came from, as the locations of an export tell them.

A location has the frames of the function that was exported, the innermost first. What is bound for
an operation is bound below a frame of that file and line, so JAX notes it for each equation as it
does for functions that it traces, and errors and origins of nodes name it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

_FRAME = re.compile(r'"([^"]*)"\("([^"]+)":(\d+)')
_CALL = compile("run()", "<exported>", "eval")


class Place(NamedTuple):
    """A line of source, in the function that stands there."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


def place_in(location: str) -> Place | None:
    """The innermost frame of a location that is of no installed library, else the innermost."""
    innermost = None
    for found in _FRAME.finditer(location):
        name, file, line = found.groups()
        if innermost is None or not _is_installed(file):
            innermost = Place(name.rpartition(".")[2], file, int(line))
        if not _is_installed(file):
            break
    return innermost


def run_at(place: Place | None, function: Callable[[], Any]) -> Any:
    """What ``function`` gives, called from ``place``."""
    return function() if place is None else eval(_code(place), {"run": function})


@lru_cache(maxsize=256)
def _code(place: Place) -> CodeType:
    return _CALL.replace(
        co_filename=place.file,
        co_firstlineno=place.line,
        co_name=place.function,
        co_qualname=place.function,
    )


def _is_installed(file: str) -> bool:
    return "site-packages" in file or "dist-packages" in file
