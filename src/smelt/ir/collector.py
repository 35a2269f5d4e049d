"""Pauses the cyclic garbage collector during a compile.

Graphs are cyclic, and each full collection walks every one of them. With the collector on, each
allocating step is two to four times as slow and the compile time grows faster than linearly.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_depth = 0
_was_enabled = False


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause garbage collection within the block; nested and concurrent blocks share one pause.

    Collection resumes when the last of these blocks ends, in whichever thread.
    """
    global _depth, _was_enabled  # noqa: PLW0603 - the collector itself is global
    with _lock:
        if _depth == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0 and _was_enabled:
                gc.enable()
