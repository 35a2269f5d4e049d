"""Conditions that the sizes of a run must satisfy."""

from __future__ import annotations

import re
from dataclasses import dataclass

from smelt.program.run_sizes import Dim, highest, lowest, same

_SIZE = re.compile(r"\bdim\d+\b")


@dataclass(frozen=True, slots=True)
class Condition:
    """Two sizes that must be equal in a run.

    With ``or_less``, the first must instead not exceed the second. With ``or_one``, the first may
    also be 1.
    """

    size: Dim
    other: Dim
    or_less: bool = False
    or_one: bool = False

    @property
    def violation(self) -> str:
        """Return a C expression that is true if the condition is violated."""
        differs = f"{self.size} {'>' if self.or_less else '!='} {self.other}"
        return f"({differs} && {self.size} != 1)" if self.or_one else differs

    @property
    def read(self) -> frozenset[str]:
        """Return the C names of the run-time sizes that the condition reads."""
        return frozenset(_SIZE.findall(self.violation))

    @property
    def holds(self) -> bool:
        """True if the condition holds in every run."""
        if self.or_less:
            return highest(self.size - self.other) <= 0
        return same(self.size, self.other)

    @property
    def fails(self) -> bool:
        """True if the condition holds in no run."""
        difference = self.size - self.other
        if self.or_one and lowest(self.size) <= 1 <= highest(self.size):
            return False
        return lowest(difference) > 0 or (not self.or_less and highest(difference) < 0)
