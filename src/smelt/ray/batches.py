"""Work on the models of a batch on the machines of a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smelt import __version__
from smelt.batch.outcome import Outcome
from smelt.batch.plan import Batch, Job
from smelt.batch.process import GRACE, attend, failed
from smelt.errors import ResourceLimit, SmeltError, UsageError
from smelt.ray.cluster import LOCAL, connected


def attended(
    batch: Batch,
    tasks: list[tuple[Job, Outcome | None]],
    address: str = LOCAL,
    jobs: int | None = None,
) -> Iterator[Outcome]:
    """The outcomes of ``tasks`` as they come, ``jobs`` at a time, or one a CPU of the cluster.

    Every machine reads the models and writes the results itself, at the paths of this one. Whoever
    closes the iterator early ends the tasks and their processes.

    Raises UsageError E694 without a cluster, E695 if a machine has another smelt.
    """
    with connected(address):
        import ray

        work = ray.remote(num_cpus=1)(_attend)
        limit = jobs or max(int(ray.cluster_resources().get("CPU", 1)), 1)
        waiting = list(reversed(tasks))
        running: dict[Any, Job] = {}
        shared = ray.put(batch)
        try:
            while waiting or running:
                while waiting and len(running) < limit:
                    job, known = waiting.pop()
                    running[work.remote(job, shared, known, __version__)] = job
                for reference in ray.wait(list(running))[0]:
                    yield _outcome(reference, running.pop(reference))
        finally:
            for reference in running:
                ray.cancel(reference)
            if running:
                ray.wait(list(running), num_returns=len(running), timeout=2 * GRACE)


def _attend(job: Job, batch: Batch, known: Outcome | None, version: str) -> Outcome:
    """What a worker does; it is sent to the worker by its name, so smelt has to be there."""
    if __version__ != version:
        raise UsageError(
            "E695",
            f"a machine of the cluster has smelt {__version__}, this one {version}",
            fix=f"install smelt {version} on every machine",
        )
    return attend(job, batch, known)


def _outcome(reference: Any, job: Job) -> Outcome:
    """The outcome of a task, also where its worker has died; raises the error of all models."""
    import ray.exceptions

    try:
        found: Outcome = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, SmeltError):
            raise error.cause from None
        raise
    except ray.exceptions.RayError as error:
        what = "the worker of Ray that had the model died"
        why = str(error).strip().partition("\n")[0][:200]
        return failed(job, "", ResourceLimit("E520", what, why=why), 0.0)
    return found
