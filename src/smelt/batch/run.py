"""Run a batch: process the models without a valid outcome, and return the recorded outcomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from smelt.batch.local import run_jobs
from smelt.batch.outcome import Outcome
from smelt.batch.plan import Batch, Job
from smelt.batch.record import opened

Task: TypeAlias = tuple[Job, Outcome | None]
RunJobs: TypeAlias = Callable[[Batch, list[Task]], Iterator[Outcome]]
"""Processes tasks, each a job and its last outcome, and yields outcomes as they come."""


@dataclass
class Summary:
    """The outcomes of a batch, by name; ``stopped`` if some models were not reached."""

    batch: Batch
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    stopped: bool = False

    @property
    def ok(self) -> bool:
        """True if every model is done."""
        outcomes = self.outcomes.values()
        return len(outcomes) == len(self.batch.jobs) and all(outcome.done for outcome in outcomes)

    def listed(self) -> list[Outcome]:
        """Return the outcomes in the order of the models."""
        outcomes = (self.outcomes.get(job.name) for job in self.batch.jobs)
        return [outcome for outcome in outcomes if outcome is not None]

    def to_json(self) -> dict[str, Any]:
        """Return the summary as JSON data: counts, and the outcome of each model that was tried."""
        listed = self.listed()
        done = sum(outcome.done for outcome in listed)
        return {
            "schema": "smelt.batch/2",
            "action": self.batch.action,
            "folder": str(self.batch.folder),
            "options": list(self.batch.options),
            "stopped": self.stopped,
            "counts": {
                "done": done,
                "failed": len(listed) - done,
                "missing": len(self.batch.jobs) - len(listed),
                "cached": sum(outcome.cached for outcome in listed),
            },
            "models": [outcome.to_json() for outcome in listed],
        }


def run(
    batch: Batch,
    *,
    run_jobs: RunJobs = run_jobs,
    retry: bool = False,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> Summary:
    """Process the missing models of ``batch`` and return the outcome of every model.

    With ``retry``, failed models are tried again. ``tell`` is called with each outcome. On Ctrl-C
    the processes are ended and the summary is ``stopped``; the same call continues. Raises
    UsageError E693 if another batch uses the folder, E643 for options that the command does not
    have.
    """
    summary = Summary(batch)
    with opened(batch.folder, batch.action) as record:
        last_outcomes = [record.last_outcome(job.output) for job in batch.jobs]
        if retry:
            last_outcomes = [
                item if item is not None and item.done else None for item in last_outcomes
            ]
        outcomes = run_jobs(batch, list(zip(batch.jobs, last_outcomes, strict=True)))
        try:
            for outcome in outcomes:
                if not outcome.cached:
                    record.add(outcome)
                summary.outcomes[outcome.name] = outcome
                tell(outcome)
        except KeyboardInterrupt:
            summary.stopped = True
        finally:
            outcomes.close()  # type: ignore[attr-defined]
    return summary
