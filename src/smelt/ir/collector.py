"""Keep the cyclic garbage collector out of a compile.

Graphs are all cycles, and each full collection walks every one of them: left on, it makes every
allocating step two to four times as slow and the whole superlinear.
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
    """Pause collection; restored when the outermost of all such blocks ends, in any thread."""
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
