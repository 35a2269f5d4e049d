"""The most that sizes come to which each round of a loop may leave otherwise than it got them.

What a round makes of a size may be found out inside of it, by an inner loop, a branch or the data.
So the body is tried out: a copy of it, settled for the largest sizes that a round may get, tells
the largest that it may leave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

Largest: TypeAlias = dict[str, int]
Round: TypeAlias = Callable[[Mapping[str, int]], "Largest | None"]
"""What sizes up to these may be after a round; None if nothing tells."""

FEW_ROUNDS = 32
"""As many are tried one by one where growth is not the same in each."""


def after_rounds(start: Mapping[str, int], rounds: int | None, one: Round) -> Largest | None:
    """The largest sizes that ``rounds``, None for any number, make of those at ``start``; None if
    nothing tells.

    Sizes that grow by the same in the first two rounds and in the last grow so in those between.
    A run in which one outgrows what is said here has no result, whatever the reason.
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
    """What the last of ``rounds`` leaves, each of which adds no more than the first; None if the
    second or the last adds more."""
    growth = {name: first[name] - size for name, size in start.items()}
    last = {name: size + (rounds - 1) * growth[name] for name, size in start.items()}
    ends = [(sizes, one(sizes)) for sizes in (first, last)]
    for sizes, after in ends:
        if after is None or any(after[name] > sizes[name] + growth[name] for name in start):
            return None
    at_last = ends[-1][1] or {}
    return {name: max(size, at_last[name]) for name, size in first.items()}
