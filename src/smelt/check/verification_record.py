"""The record of a verification: one line of text, or plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from smelt.check.agreement import sizes_in_words, sizes_together
from smelt.check.compare import Comparison, error_in_words, worst
from smelt.check.comparison_inputs import ComparisonInputs
from smelt.passes.base import EXACT, Exactness, joint_exactness


@dataclass
class VerificationRecord:
    """How the result of a pipeline was compared with its source.

    ``passes`` counts the pass runs that changed the model, ``declared`` is their joint exactness,
    ``versions`` the number of compared versions. ``seconds`` is wall-clock time, the runs of the
    source included. ``compared`` are the comparisons of the last version's outputs with those of
    the source; ``undetermined`` counts their elements that rounding alone decides.
    """

    mode: str
    runtime: str = ""
    sizes: list[Mapping[str, int]] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    passes: int = 0
    versions: int = 0
    declared: Exactness = EXACT
    undetermined: int = 0
    seconds: float = 0.0
    compared: list[tuple[ComparisonInputs, Comparison]] = field(default_factory=list)

    @property
    def worst(self) -> Comparison:
        """The comparison of the last version with the largest error."""
        return worst(item for _, item in self.compared)

    def note(
        self,
        runtime: str,
        declared: Sequence[Exactness],
        compared: Sequence[tuple[ComparisonInputs, Comparison]],
    ) -> None:
        """Record the comparison of one version with the source, and the exactness of its passes."""
        self.runtime, self.passes, self.declared = runtime, len(declared), joint_exactness(declared)
        self.versions += 1
        self.compared = [
            (ComparisonInputs((), case.sizes, case.inputs), item) for case, item in compared
        ]
        self.sizes = list({sizes_in_words(c.sizes): c.sizes for c, _ in compared}.values())
        self.inputs = list(dict.fromkeys(case.inputs for case, _ in compared))
        self.undetermined = sum(item.unstable for _, item in compared)

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON data; each output is listed with its sizes and inputs."""
        return {
            "mode": self.mode,
            "runtime": self.runtime,
            "sizes": [dict(sizes) for sizes in self.sizes],
            "inputs": self.inputs,
            "passes": self.passes,
            "versions": self.versions,
            "declared": str(self.declared),
            "worst": self.worst.to_json(),
            "undetermined": self.undetermined,
            "seconds": self.seconds,
            "outputs": [
                {"sizes": dict(case.sizes), "inputs": case.inputs, **item.to_json()}
                for case, item in self.compared
            ],
        }

    def __repr__(self) -> str:
        return f"<VerificationRecord: {self}>"

    def _repr_html_(self) -> str:
        """Return the record as a table, for notebooks."""
        from smelt.ir.html.markup import table

        facts = self.to_json() | {"sizes": "; ".join(map(sizes_in_words, self.sizes))}
        return table([(name.replace("_", " "), fact) for name, fact in facts.items()])

    def __str__(self) -> str:
        if not self.versions:
            return "nothing to verify: no pass changed anything"
        changes = f"{self.passes} change{'' if self.passes == 1 else 's'}"
        when = f"after each of {changes}" if self.mode == "each" else f"after {changes}"
        return f"verified {when} {self.in_words}: {error_in_words(self.worst)}"

    @property
    def in_words(self) -> str:
        """The sizes and the number of given inputs, in words."""
        count = sum(kind.startswith("given") for kind in self.inputs)
        inputs = f"on {count} given input{'' if count == 1 else 's'} " if count else ""
        return f"{inputs}at {sizes_together(self.sizes)}"
