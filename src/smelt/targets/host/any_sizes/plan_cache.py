"""A cache of plans for one part of a model, used by several threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from smelt.targets.host.any_sizes.planning import Runner

MOST_PLANS = 16
"""The most plans in the cache; the least recently used one is dropped."""


class PlanCache:
    """Runners by key, such as the shapes of a call.

    A runner is made under the lock ``planning``, so that a model makes one at a time. A thread
    whose runner exists does not wait for it.
    """

    def __init__(self, planning: threading.RLock) -> None:
        """Begin empty; ``_lock`` is held only while the dict of runners changes."""
        self._planning = planning
        self._lock = threading.Lock()
        self._runs: OrderedDict[Hashable, Runner] = OrderedDict()

    def of(self, key: Hashable, make: Callable[[], Runner]) -> Runner:
        """Return the runner for ``key``; ``make`` creates it if there is none."""
        run = self._find(key)
        if run is not None:
            return run
        with self._planning:
            run = self._find(key)  # another thread may have made it meanwhile
            if run is None:
                run = make()
                with self._lock:
                    self._runs[key] = run
                    if len(self._runs) > MOST_PLANS:
                        self._runs.popitem(last=False)
        return run

    def _find(self, key: Hashable) -> Runner | None:
        """Return the runner for ``key``, now the most recently used; None if there is none."""
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
            return self._runs.get(key)
