"""A background thread for compiles; the end of the process does not wait for it.

One job runs at a time, so that many programs do not use all processors. Jobs of deleted objects are
dropped. At the end of the process, running compilers are killed and their files removed.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

from smelt.runtime.jit import toolchain

Job: TypeAlias = "weakref.WeakMethod[Callable[[], None]]"
CLEAN_UP_SECONDS = 2.0
"""The most seconds that process exit waits for a killed compiler's files to be removed."""


class Background:
    """The background thread and its queue of jobs."""

    def __init__(self) -> None:
        """Start with an empty queue; the thread starts with the first job.

        ``_changed`` guards the queue and signals new jobs; ``_idle`` is set while no compiler runs.
        """
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._idle = threading.Event()
        self._idle.set()

    def submit(self, work: Callable[[], None]) -> None:
        """Queue ``work``, a bound method; it is dropped if its object dies first."""
        with self._changed:
            if self._ended:
                return
            self._waiting.append(weakref.WeakMethod(work))
            self._changed.notify()
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(
                    target=self._work, name="smelt-compiles", daemon=True
                )
                self._thread.start()

    def _work(self) -> None:
        """Run jobs forever; the body of the thread."""
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                work = self._waiting.popleft()()
            if work is not None:
                work()
            del work  # otherwise its object lives until the next job

    def building(self) -> bool:
        """Record that a compiler starts; False if the process is ending, and then none
        may start.
        """
        with self._changed:
            if not self._ended:
                self._idle.clear()
            return not self._ended

    def built(self) -> None:
        """Record that no compiler runs and no partial file is left."""
        self._idle.set()

    @property
    def ended(self) -> bool:
        """True once the process ends."""
        return self._ended

    def end(self) -> None:
        """Kill running compilers and start no more jobs."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
        if not self._idle.is_set():
            toolchain.end_compilers()
            self._idle.wait(CLEAN_UP_SECONDS)


@cache
def _background_of(process: int) -> Background:
    """Return the Background of the process with this id."""
    return Background()


def background() -> Background:
    """Return the Background of this process; a forked child gets its own, without the parent's
    jobs.
    """
    return _background_of(os.getpid())


atexit.register(lambda: background().end())
