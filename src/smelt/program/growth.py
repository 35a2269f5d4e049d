"""The largest sizes that loop states reach if iterations change them.

The size after an iteration may be computed inside of it, by an inner loop, a branch or the data. So
the body is tried: a copy of it, resolved for the largest sizes at its start, gives the largest
sizes at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

Largest: TypeAlias = dict[str, int]
Iterate: TypeAlias = Callable[[Mapping[str, int]], "Largest | None"]
"""Returns the largest sizes after one iteration from sizes up to these; None if unknown."""

MAX_TRIALS = 32
"""Maximum number of iterations that are tried one by one if growth differs between them."""


def after_iterations(
    start: Mapping[str, int], iterations: int | None, iterate: Iterate
) -> Largest | None:
    """Return the largest sizes after ``iterations`` (None: any number) from ``start``; None if
    unknown.

    Sizes with the same growth in the first two iterations and in the last are assumed to grow by it
    in between. A run that exceeds the returned sizes fails.
    """
    sizes: Largest = dict(start)
    for count in range(MAX_TRIALS if iterations is None else min(iterations, MAX_TRIALS)):
        if count == 1 and iterations is not None:
            end = _after_steady_growth(start, sizes, iterations, iterate)
            if end:
                return end
        after = iterate(sizes)
        if after is None:
            return None
        larger = {name: max(size, after[name]) for name, size in sizes.items()}
        if larger == sizes:
            return sizes
        if iterations is None and count == 1:
            return None
        sizes = larger
    return sizes if iterations is not None and iterations <= MAX_TRIALS else None


def _after_steady_growth(
    start: Mapping[str, int], first: Largest, iterations: int, iterate: Iterate
) -> Largest | None:
    """Return the sizes after ``iterations`` if the second and the last iteration add at most what
    the first adds, else None.

    ``first`` are the sizes after the first iteration.
    """
    growth = {name: first[name] - size for name, size in start.items()}
    last = {name: size + (iterations - 1) * growth[name] for name, size in start.items()}
    tried = [(sizes, iterate(sizes)) for sizes in (first, last)]
    for sizes, after in tried:
        if after is None or any(after[name] > sizes[name] + growth[name] for name in start):
            return None
    after_last = tried[-1][1] or {}
    return {name: max(size, after_last[name]) for name, size in first.items()}
