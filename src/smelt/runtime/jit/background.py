"""Work for one thread in the background, which the end of the process does not wait for.

One job runs at a time, so that many programs do not take all processors. Those whose owner is gone
are dropped, and so is everything when the process ends: compilers are killed, and what they had
begun to write is removed.
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
TO_CLEAN_UP = 2.0
"""Seconds that the end of a process waits at most until a killed compiler's files are removed."""


class Background:
    """The thread and what waits for it."""

    def __init__(self) -> None:
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ended = False
        self._idle = threading.Event()
        self._idle.set()

    def submit(self, work: Callable[[], None]) -> None:
        """Run ``work``, a method, after what was submitted before, unless its object dies first."""
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
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                work = self._waiting.popleft()()
            if work is not None:
                work()
            del work  # else its object would live until the next job

    def building(self) -> bool:
        """Say that a compiler may be at work; False when the process ends, so none must start."""
        with self._changed:
            if not self._ended:
                self._idle.clear()
            return not self._ended

    def built(self) -> None:
        """Say that no compiler is at work, and that no half of a file is left."""
        self._idle.set()

    @property
    def ended(self) -> bool:
        """Whether the process ends."""
        return self._ended

    def end(self) -> None:
        """Kill what compiles, start nothing more."""
        with self._changed:
            self._ended = True
            self._waiting.clear()
        if not self._idle.is_set():
            toolchain.end_compilers()
            self._idle.wait(TO_CLEAN_UP)


@cache
def _of(process: int) -> Background:
    return Background()


def background() -> Background:
    """That of this process: a child that was forked has its own, without the jobs of the parent."""
    return _of(os.getpid())


atexit.register(lambda: background().end())
