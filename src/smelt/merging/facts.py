"""What a merge tells about its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smelt.check.verification import Report
from smelt.merging.outputs import Caches


@dataclass(frozen=True)
class Facts:
    """The bytes of weights before and after, and the comparisons with the sources.

    ``not_computed`` are outputs that the branch with past does not compute; ``caches`` says what
    that branch returns for them.
    ``renamed`` are inputs and outputs of a connected model with their new names, ``tied`` the
    weights that are an embedding transposed.
    """

    weights: tuple[int, int]
    reports: list[Report] = field(default_factory=list)
    not_computed: list[str] = field(default_factory=list)
    caches: Caches = "empty"
    renamed: Mapping[str, str] = field(default_factory=dict)
    tied: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the facts as JSON data."""
        return {
            "weights": list(self.weights),
            "not_computed": self.not_computed,
            "caches": self.caches,
            "renamed": dict(self.renamed),
            "tied": self.tied,
            "verification": [report.to_json() for report in self.reports],
        }
