"""Source lines of operations, from the locations in an exported module.

A location holds the frames of the exported function, innermost first. smelt binds each primitive
below a Python frame with that file and line. So JAX records the line for each equation as it does
for a traced function, and errors and the provenance of nodes name it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple

_FRAME = re.compile(r'"([^"]*)"\("([^"]+)":(\d+)')  # such as "Model.__call__"("model.py":12
_CALL = compile("run()", "<exported>", "eval")


class SourceLine(NamedTuple):
    """A source line, with its function."""

    function: str
    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


def innermost_line(location: str) -> SourceLine | None:
    """Return the innermost frame in ``location`` outside of installed packages.

    If all frames are in installed packages, return the innermost one; None if there is no frame.
    """
    innermost = None
    for frame in _FRAME.finditer(location):
        name, file, line = frame.groups()
        if innermost is None or not _is_installed(file):
            innermost = SourceLine(name.rpartition(".")[2], file, int(line))
        if not _is_installed(file):
            break
    return innermost


def call_at(place: SourceLine | None, function: Callable[[], Any]) -> Any:
    """Return the result of ``function``, called from a frame with the source line ``place``."""
    return function() if place is None else eval(_code(place), {"run": function})


@lru_cache(maxsize=256)
def _code(place: SourceLine) -> CodeType:
    """Return code that calls ``run()`` and has the file, line and function name of ``place``."""
    return _CALL.replace(
        co_filename=place.file,
        co_firstlineno=place.line,
        co_name=place.function,
        co_qualname=place.function,
    )


def _is_installed(file: str) -> bool:
    """True for a file of an installed package."""
    return "site-packages" in file or "dist-packages" in file
