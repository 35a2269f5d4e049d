"""The results of the cases: whether a target agrees with the source, and which nodes it
ran itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from smelt.errors import SmeltError
from smelt.targets.base import Target

Outcome = Literal["agrees", "compiles", "elsewhere", "refused", "broken"]
WORKS = ("agrees", "compiles")


@dataclass(frozen=True)
class Result:
    """The result of one case.

    ``here`` maps operators to the number of nodes that the target ran itself, after its selection.
    ``left`` maps the other operators to the reason why the fallback ran them. ``why`` is the reason
    of a refusal or failure. ``seconds`` is the time of a run on the target, ``reference`` on
    ``host``.
    """

    outcome: Outcome
    here: Mapping[str, int] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    why: str = ""
    seconds: float | None = None
    reference: float | None = None


class Conformance(dict[str, Result]):
    """The results by case; as text a table."""

    def __init__(self, target: Target[Any, Any], results: Mapping[str, Result]) -> None:
        super().__init__(results)
        self.target = target

    @property
    def ran(self) -> frozenset[str]:
        """The operators that the target itself ran in some case."""
        works = [result for result in self.values() if result.outcome in WORKS]
        return frozenset(name for result in works for name in result.here)

    @property
    def never_ran(self) -> list[str]:
        """Sentences about declared operators that no case ran on the target, with known reasons.

        They cover the target's own operators, and ONNX operators that occur in a case.
        """
        left = {name: why for result in self.values() for name, why in result.left.items()}
        sentences = []
        for name in sorted(set(self._declared()) - self.ran):
            if name in left:
                sentences.append(f"{name} is declared, but the fallback runs it: {left[name]}")
            elif "." in name:
                sentences.append(f"{name} is declared, but no case has it")
        return sentences

    def _declared(self) -> Iterator[str]:
        """Yield the operators that the target declares: its limits list them, or it defines them.

        Some case should run each of them.
        """
        listed = self.target.limits.operators
        own_operators = {operator.key for operator in self.target.operators}
        for domain, name in own_operators if listed is None else listed:
            yield f"{domain}.{name}" if domain else name

    def __str__(self) -> str:
        width = max(map(len, self), default=0)
        return "\n".join(f"{name:{width}}  {_line(result)}" for name, result in self.items())


def _line(result: Result) -> str:
    """Return one result as a row of the table."""
    ran = ", ".join(f"{count} {name}" for name, count in result.here.items())
    reasons: dict[str, list[str]] = {}
    for name, why in result.left.items():
        reasons.setdefault(why, []).append(name)
    left = "; ".join(f"{', '.join(names)} left: {why}" for why, names in reasons.items())
    time = ""
    if result.seconds is not None and result.reference:
        time = f"{1e6 * result.seconds:.0f} us, {result.seconds / result.reference:.1f} of host"
    parts = (f"{result.outcome:9}", ran, left, result.why, time)
    return "  ".join(part for part in parts if part)


def in_a_line(error: SmeltError) -> str:
    """Return an error with its place and reason, for a row of a table."""
    at = (error.at,) if isinstance(error.at, str) else tuple(error.at or ())
    sentence = f"{error.code} {error.what}" + (f" at {at[0]}" if at else "")
    return f"{sentence}: {error.why}" if error.why else sentence
