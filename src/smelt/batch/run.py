"""Run a batch: what is missing is done, what is done is told again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from smelt.batch.local import attended
from smelt.batch.outcome import Outcome
from smelt.batch.plan import Batch, Job
from smelt.batch.record import opened

Task: TypeAlias = tuple[Job, Outcome | None]
Attend: TypeAlias = Callable[[Batch, list[Task]], Iterator[Outcome]]
"""What works on tasks, each a job and what is known of it, and tells outcomes as they come."""


@dataclass
class Summary:
    """What became of the models of ``batch``, in its order; ``stopped`` if not all were reached."""

    batch: Batch
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    stopped: bool = False

    @property
    def ok(self) -> bool:
        """True if every model is done."""
        found = self.outcomes.values()
        return len(found) == len(self.batch.jobs) and all(outcome.done for outcome in found)

    def listed(self) -> list[Outcome]:
        """The outcomes in the order of the models."""
        known = (self.outcomes.get(job.name) for job in self.batch.jobs)
        return [outcome for outcome in known if outcome is not None]

    def to_json(self) -> dict[str, Any]:
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
    attend: Attend = attended,
    retry: bool = False,
    tell: Callable[[Outcome], None] = lambda outcome: None,
) -> Summary:
    """Do what is missing of ``batch`` and say what became of each model.

    With ``retry`` what failed is tried again. ``tell`` hears each outcome as it comes. On Ctrl-C
    the processes are ended and the summary says ``stopped``; the same call goes on.

    Raises UsageError E693 if another batch is at work in the folder, and what the command says
    (E643) of options that it does not have.
    """
    summary = Summary(batch)
    with opened(batch.folder, batch.action) as record:
        known = [record.known(job.output) for job in batch.jobs]
        again = [None if retry and item and not item.done else item for item in known]
        coming = attend(batch, list(zip(batch.jobs, again, strict=True)))
        try:
            for outcome in coming:
                if not outcome.cached:
                    record.add(outcome)
                summary.outcomes[outcome.name] = outcome
                tell(outcome)
        except KeyboardInterrupt:
            summary.stopped = True
        finally:
            coming.close()  # type: ignore[attr-defined]
    return summary
