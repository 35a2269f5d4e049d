"""What has to hold of the sizes of a run."""

from __future__ import annotations

import re
from dataclasses import dataclass

from smelt.program.run_sizes import Dim, highest, lowest, same

_SIZE = re.compile(r"\bdim\d+\b")


@dataclass(frozen=True, slots=True)
class Condition:
    """Two sizes that have to be equal in a run, or the first no greater if ``or_less``. With
    ``or_one``, the first may be 1 instead."""

    size: Dim
    other: Dim
    or_less: bool = False
    or_one: bool = False

    @property
    def broken(self) -> str:
        """What is true, as C, in a run that has no result."""
        differs = f"{self.size} {'>' if self.or_less else '!='} {self.other}"
        return f"({differs} && {self.size} != 1)" if self.or_one else differs

    @property
    def read(self) -> frozenset[str]:
        """The names in C of the sizes of a run that it hangs on."""
        return frozenset(_SIZE.findall(self.broken))

    @property
    def holds(self) -> bool:
        """True if it does in every run."""
        if self.or_less:
            return highest(self.size - self.other) <= 0
        return same(self.size, self.other)

    @property
    def fails(self) -> bool:
        """True if it does not hold in any run."""
        difference = self.size - self.other
        if self.or_one and lowest(self.size) <= 1 <= highest(self.size):
            return False
        return lowest(difference) > 0 or (not self.or_less and highest(difference) < 0)
