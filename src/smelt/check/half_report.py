"""What a conversion to float16 or bfloat16 did, and its measured error."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass
class HalfReport:
    """What stayed in float32 and why, and the error over ``samples`` runs.

    ``error`` is the norm of the difference over the norm of the result, of the worst output; None
    if the outputs hold no numbers.
    """

    format: str
    in_half: int = 0
    kept: Counter[str] = field(default_factory=Counter)
    operators: dict[str, Counter[str]] = field(default_factory=dict)
    casts: int = 0
    error: float | None = 0.0
    samples: int = 0
    is_drawn: bool = False

    def lines(self) -> list[str]:
        """Return the report as sentences."""
        total = self.in_half + sum(self.kept.values())
        first = f"{self.format}: {self.in_half:,} of {total:,} nodes, {self.casts:,} casts, "
        if self.error is None:
            first += f"error not measured: the outputs of {self.samples} runs hold no numbers"
        else:
            first += f"error {100 * self.error:.3g} % over {self.samples} runs"
        reasons = [
            f"{count:,} for {reason} ({_most_common(self.operators[reason])})"
            for reason, count in self.kept.most_common()
        ]
        if self.is_drawn:
            first += " on random inputs, which may be far from yours: give some with --inputs"
        return [first, *(["in float32: " + ", ".join(reasons)] if reasons else [])]

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain data."""
        return {
            "format": self.format,
            "nodes": self.in_half,
            "kept": dict(self.kept),
            "casts": self.casts,
            "error": self.error,
            "samples": self.samples,
            "random_inputs": self.is_drawn,
            "text": self.lines(),
        }


def _most_common(operators: Counter[str]) -> str:
    """Return the names of the three most frequent operators."""
    names = [name for name, _ in operators.most_common(3)]
    return ", ".join(names) + (", ..." if len(operators) > 3 else "")
