"""The threads that compute parts of compiled programs: one pool for the process, built here."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from smelt.errors import SmeltError
from smelt.runtime.jit.build import built, say_once

FUNCTION = "smelt_parallel_for"


@cache
def parallel_for() -> ctypes.c_void_p | None:
    """The address of what has parts computed, see ``pool.c``; None if it could not be built.

    The pool has a thread less than the parts of the program that has the most; they start when
    they are needed first. Without it, a program computes its parts one after the other.
    """
    text = Path(__file__).with_name("pool.c").read_text("ascii")
    try:
        with built(text, ["-pthread"]) as path:
            library = ctypes.CDLL(str(path))
    except (SmeltError, OSError) as error:
        say_once(f"programs run on one thread: no pool of threads could be made: {error}")
        return None
    return ctypes.cast(library[FUNCTION], ctypes.c_void_p)
