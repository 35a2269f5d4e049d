"""An end to what JAX itself computes for too long; it computes where no exception reaches."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 20


@contextmanager
def jax_computes() -> Iterator[None]:
    """Around what JAX computes, to be waited for inside.

    A worker of the sweep ends with SIGALRM if that takes too long; any other process waits.
    """
    if multiprocessing.parent_process() is None:
        yield
        return
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
