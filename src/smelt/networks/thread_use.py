"""Threads for the slices of a contraction: over several slices, or within the products of one.

Threads over slices need no other program, but the memory of several slices. Both ways are measured
where the slices take long enough to pay for the second program, whose products run on all threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

Run: TypeAlias = Callable[[int], np.ndarray]
"""Returns the result of a slice by its number."""

MEASURED_FROM = 5.0
"""Seconds that the slices must take for both ways to be measured; compiling the second program
takes one to three seconds."""


BRIEF = 2e-4
"""Seconds. Slices that take less run on one thread: handing one to a thread costs about as much."""


@dataclass
class ThreadUse:
    """How ``threads`` threads compute slices.

    ``report`` has the ``way`` once it is chosen, and the wall time per slice of each way that was
    measured.
    """

    threads: int
    report: dict[str, Any] = field(default_factory=dict)

    def results(
        self, run: Run, within: Callable[[], Run] | None, numbers: Sequence[int]
    ) -> Iterator[np.ndarray]:
        """Yield the results of the slices ``numbers``, in order.

        ``run`` computes a slice on one thread. ``within`` compiles the program whose products run
        on all threads, and returns its function; None: there is no such program.
        """
        if self.threads == 1 or len(numbers) < 2:
            yield from map(run, numbers)
            return
        if "way" not in self.report:
            started = perf_counter()
            first = run(numbers[0])
            alone = perf_counter() - started
            yield first
            numbers = numbers[1:]
            seconds = alone * len(numbers) / self.threads
            enough = len(numbers) > 4 * self.threads and seconds >= MEASURED_FROM
            if within is not None and enough:
                yield from self._measured(run, within(), numbers, first)
                numbers = numbers[2 * self.threads :]
            else:
                self.report["way"] = "one thread" if alone < BRIEF else "slices"
        if self.report["way"] == "one thread":
            yield from map(run, numbers)
        elif self.report["way"] == "products" and within is not None:
            yield from map(within(), numbers)
        else:
            yield from over_slices(run, numbers, self.threads)

    def _measured(
        self, run: Run, shared: Run, numbers: Sequence[int], first: np.ndarray
    ) -> Iterator[np.ndarray]:
        """Yield the results of the first ``2 * threads`` slices, half of them by each way; choose
        the faster one.

        ``first`` is a result of ``run`` for the slice before ``numbers``: if ``shared`` returns
        other bits for it, threads go over slices.
        """
        count = self.threads
        is_same = np.array_equal(_bits(shared(numbers[0] - 1)), _bits(first))
        for way, results in (
            ("slices", over_slices(run, numbers[:count], count)),
            ("products", map(shared if is_same else run, numbers[count : 2 * count])),
        ):
            started = perf_counter()
            found = list(results)
            self.report[f"seconds by {way}"] = (perf_counter() - started) / count
            yield from found
        is_faster = self.report["seconds by products"] < self.report["seconds by slices"]
        self.report["way"] = "products" if is_same and is_faster else "slices"


def _bits(array: np.ndarray) -> np.ndarray:
    """Return the elements as bytes, so that NaN equals NaN and 0 differs from -0."""
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def over_slices(run: Run, numbers: Sequence[int], threads: int) -> Iterator[np.ndarray]:
    """Yield the results of the slices ``numbers``, in order, ``threads`` of them at a time.

    At most ``2 * threads`` slices are computed ahead, which bounds the memory.
    """
    with ThreadPoolExecutor(threads) as pool:
        left = iter(numbers)
        waiting = [pool.submit(run, number) for number in islice(left, 2 * threads)]
        while waiting:
            first = waiting.pop(0)
            yield first.result()
            waiting += [pool.submit(run, number) for number in islice(left, 1)]
