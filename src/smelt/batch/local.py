"""Process the models of a batch on this machine, several at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial

from smelt.batch.outcome import Outcome
from smelt.batch.plan import Batch, Job
from smelt.batch.process import run_job


def run_jobs(
    batch: Batch, tasks: list[tuple[Job, Outcome | None]], jobs: int = 1
) -> Iterator[Outcome]:
    """Yield the outcomes of ``tasks`` as models finish, with ``jobs`` processes at a time.

    Closing the iterator early ends the processes.
    """
    stop = threading.Event()
    work = partial(run_job, batch=batch, stopping=stop.is_set)
    # Each thread only waits for its process, which does the work.
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(work, job, earlier=earlier) for job, earlier in tasks]
        try:
            for future in as_completed(futures):
                yield future.result()
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)
