"""The thread pool of this process, which computes the shards of compiled programs."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from smelt.errors import SmeltError
from smelt.runtime.jit.build import built, warn_once

FUNCTION = "smelt_parallel_for"
MOST_THREADS = 64
"""The most threads that compute one step."""


@cache
def parallel_for() -> ctypes.c_void_p | None:
    """Return the address of the pool's entry function (see ``pool.c``); None if it cannot be built.

    The pool has one thread less than the program with most shards; threads start on first use.
    Without the pool, a program computes its shards one after another.
    """
    text = Path(__file__).with_name("pool.c").read_text("ascii")
    try:
        with built(text, ["-pthread"]) as path:
            library = ctypes.CDLL(str(path))
    except (SmeltError, OSError) as error:
        warn_once(f"programs run on one thread: no thread pool could be built: {error}")
        return None
    return ctypes.cast(library[FUNCTION], ctypes.c_void_p)
