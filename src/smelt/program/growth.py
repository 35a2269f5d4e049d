"""The largest sizes that loop states reach if iterations change them.

The size after an iteration may be computed inside of it, by an inner loop, a branch or the data. So
the body is tried: a copy of it, resolved for the largest sizes at its start, gives the largest
sizes at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

Largest: TypeAlias = dict[str, int]
Round: TypeAlias = Callable[[Mapping[str, int]], "Largest | None"]
"""Returns the largest sizes after one iteration from sizes up to these; None if unknown."""

FEW_ROUNDS = 32
"""Maximum number of iterations that are tried one by one if growth differs between them."""


def after_rounds(start: Mapping[str, int], rounds: int | None, one: Round) -> Largest | None:
    """Return the largest sizes after ``rounds`` iterations (None: any number) from ``start``.

    None if they are unknown. Sizes with the same growth in the first two iterations and in the last
    are assumed to grow by it in between. A run that exceeds the returned sizes fails.
    """
    sizes: Largest = dict(start)
    for count in range(FEW_ROUNDS if rounds is None else min(rounds, FEW_ROUNDS)):
        if count == 1 and rounds is not None and (end := _steady(start, sizes, rounds, one)):
            return end
        after = one(sizes)
        if after is None:
            return None
        larger = {name: max(size, after[name]) for name, size in sizes.items()}
        if larger == sizes:
            return sizes
        if rounds is None and count == 1:
            return None
        sizes = larger
    return sizes if rounds is not None and rounds <= FEW_ROUNDS else None


def _steady(start: Mapping[str, int], first: Largest, rounds: int, one: Round) -> Largest | None:
    """Return the sizes after ``rounds`` if no checked iteration adds more than the first, else
    None.

    The second and the last iteration are checked.
    """
    growth = {name: first[name] - size for name, size in start.items()}
    last = {name: size + (rounds - 1) * growth[name] for name, size in start.items()}
    ends = [(sizes, one(sizes)) for sizes in (first, last)]
    for sizes, after in ends:
        if after is None or any(after[name] > sizes[name] + growth[name] for name in start):
            return None
    at_last = ends[-1][1] or {}
    return {name: max(size, at_last[name]) for name, size in first.items()}
