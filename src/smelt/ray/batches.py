"""Process the models of a batch on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smelt import __version__
from smelt.batch.outcome import Outcome
from smelt.batch.plan import Batch, Job
from smelt.batch.process import GRACE, failed, run_job
from smelt.errors import ResourceLimit, SmeltError, UsageError
from smelt.ray.cluster import LOCAL, connected


def run_jobs(
    batch: Batch,
    tasks: list[tuple[Job, Outcome | None]],
    address: str = LOCAL,
    jobs: int | None = None,
) -> Iterator[Outcome]:
    """Yield the outcomes of ``tasks`` as they finish; ``jobs`` run at a time, by default one per
    CPU.

    Every machine reads the models and writes the results itself, at the same paths as this one.
    Closing the iterator early ends the tasks and their processes.

    Raises UsageError E694 without a cluster, E695 if a machine has another version of smelt.
    """
    with connected(address):
        import ray

        work = ray.remote(num_cpus=1)(_run_job)
        limit = jobs or max(int(ray.cluster_resources().get("CPU", 1)), 1)
        waiting = list(reversed(tasks))
        running: dict[Any, Job] = {}
        shared = ray.put(batch)
        try:
            while waiting or running:
                while waiting and len(running) < limit:
                    job, earlier = waiting.pop()
                    running[work.remote(job, shared, earlier, __version__)] = job
                for reference in ray.wait(list(running))[0]:
                    yield _outcome(reference, running.pop(reference))
        finally:
            for reference in running:
                ray.cancel(reference)
            if running:
                ray.wait(list(running), num_returns=len(running), timeout=2 * GRACE)


def _run_job(job: Job, batch: Batch, earlier: Outcome | None, version: str) -> Outcome:
    """Return the outcome of one model, processed on a worker.

    Ray sends this function by name, so the worker needs smelt, of this machine's ``version``.
    """
    if __version__ != version:
        raise UsageError(
            "E695",
            f"a machine of the cluster has smelt {__version__}, this one {version}",
            fix=f"install smelt {version} on every machine",
            why="results of two versions may differ",
        )
    return run_job(job, batch, earlier)


def _outcome(reference: Any, job: Job) -> Outcome:
    """Return the outcome of a task; a dead worker gives a failure.

    Raises errors that concern all models.
    """
    import ray.exceptions

    try:
        outcome: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, SmeltError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        what = "the Ray worker that processed the model died"
        why = str(error).strip().partition("\n")[0][:200]
        return failed(
            job,
            "",
            ResourceLimit(
                "E520", what, why=why, fix="start the cluster again, or run without --ray"
            ),
            0.0,
        )
    return outcome
