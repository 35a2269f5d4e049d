"""The command of this machine's C compiler."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from importlib.util import find_spec

from smelt.distribution import requirement
from smelt.errors import UsageError


def compiler_command() -> list[str]:
    """Return the C compiler as a command: ``$CC``, else cc, gcc, clang, or the one in ``ziglang``.

    Raises UsageError E661 if the machine has no C compiler.
    """
    cc = shlex.split(os.environ.get("CC", ""))
    for command in [cc] if cc else [["cc"], ["gcc"], ["clang"]]:
        if shutil.which(command[0]):
            return command
    if not cc and find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "cc"]
    raise UsageError(
        "E661",
        f"there is no C compiler {cc[0]!r}" if cc else "there is no C compiler",
        why="running a compiled model on this machine builds it first",
        fix=f"install gcc, clang or {requirement('host-cc')}, "
        "or name one in the environment variable CC",
    )
