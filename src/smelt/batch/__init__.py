"""Many models: one command over each of them, every one in a process of its own.

A crash, a kill or a hang of one model ends its process and nothing else. What became of each model
stands in a record in the folder of the results, so the same call goes on where one stopped. The
package plans, records and waits; what is done to a model is the command's work, with its options.
"""

from __future__ import annotations

from smelt.batch.outcome import Outcome
from smelt.batch.plan import Batch, Job, plan
from smelt.batch.run import Summary, run

__all__ = ["Batch", "Job", "Outcome", "Summary", "plan", "run"]
