"""Run one command over many models, each in a process of its own.

A crash, a kill or a hang of one model ends its process only. The outcome of each model is recorded
in the folder of the results, so a repeated call continues where one stopped. The package plans,
records and waits; the command processes the model, with its options.
"""

from __future__ import annotations

from smelt.batch.outcome import Outcome
from smelt.batch.plan import Batch, Job, plan
from smelt.batch.run import Summary, run

__all__ = ["Batch", "Job", "Outcome", "Summary", "plan", "run"]
