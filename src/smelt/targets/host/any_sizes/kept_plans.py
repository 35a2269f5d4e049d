"""Plans of one part of a model, for calls by several threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

from smelt.targets.host.any_sizes.planning import Runner

KEPT = 16
"""Plans that are kept; the one used longest ago goes first."""


class KeptPlans:
    """Runners by what they are for. ``planning`` is held while one is made, so that one is at a
    time in a whole model; threads whose runner is there don't wait for it."""

    def __init__(self, planning: threading.RLock) -> None:
        self._planning = planning
        self._lock = threading.Lock()
        self._runs: OrderedDict[Hashable, Runner] = OrderedDict()

    def of(self, key: Hashable, make: Callable[[], Runner]) -> Runner:
        """The runner for ``key``, by ``make`` if there is none."""
        run = self._find(key)
        if run is not None:
            return run
        with self._planning:
            run = self._find(key)  # another thread may have made it meanwhile
            if run is None:
                run = make()
                with self._lock:
                    self._runs[key] = run
                    if len(self._runs) > KEPT:
                        self._runs.popitem(last=False)
        return run

    def _find(self, key: Hashable) -> Runner | None:
        with self._lock:
            if key in self._runs:
                self._runs.move_to_end(key)
            return self._runs.get(key)
