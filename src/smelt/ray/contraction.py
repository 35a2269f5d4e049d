"""Contract a tensor network on the machines of a Ray cluster, slice by slice.

The operands are put into the cluster once. A task adds up a block of slices, and reducers add up
blocks in pairs, in the order of ``smelt.networks.slices``: the bits are those of ``sum_slices`` in
one process on the same kind of CPU.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt import __version__
from smelt.errors import ResourceLimit, SmeltError
from smelt.networks.arguments import check_function, count_of
from smelt.ray.cluster import LOCAL, connected
from smelt.ray.worker import block_sum, joined

if TYPE_CHECKING:
    from smelt.networks.network import Contraction

TASKS_PER_CPU = 8
"""The most tasks of one part of the result, for each CPU of the cluster."""

WAITING_PER_CPU = 3
"""The most tasks in flight for each CPU of the cluster."""

RETRIES = 3
"""How often a task is run again after its worker died."""


def contract(
    *operands: Any,
    memory_limit: int | str | None = None,
    address: str = LOCAL,
    retries: int = RETRIES,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Any:
    """Contract arrays like ``smelt.einsum``, with slices as tasks of a Ray cluster.

    ``memory_limit`` limits the elements of an intermediate result, and so makes slices; without
    slices, one task computes all. ``address`` is ``local`` (a cluster of this machine, ended
    afterwards), ``auto``, ``HOST:PORT`` or ``ray://HOST:PORT``. A task whose worker died is run
    again up to ``retries`` times. ``progress`` receives the number of tasks done, and of all.
    ``options`` are those of ``smelt.einsum`` but ``out``. At most ``WAITING_PER_CPU`` tasks per CPU
    are in flight. An interrupt, or an error that ``progress`` raises, cancels them.

    Raises UsageError E694 without a cluster, E695 if a machine has another version of smelt,
    ResourceLimit E520 if a task died too often, and the errors of ``smelt.einsum``.
    """
    from smelt.networks.contract import prepared

    retries = count_of("retries", retries, 0)
    check_function("progress", progress)
    artifact, arrays, back = prepared(operands, memory_limit=memory_limit, **options)
    with connected(address):
        return back(_contracted(artifact, arrays, retries, progress))


def _contracted(
    artifact: Contraction,
    arrays: Sequence[np.ndarray],
    retries: int,
    progress: Callable[[int, int], None] | None,
) -> np.ndarray:
    """Return the contraction of ``arrays`` by tasks of the connected cluster."""
    import ray

    from smelt.networks.slices import (
        PairwiseSum,
        counts_of_slices,
        empty_result,
        operands_of,
        write_part,
    )

    network = artifact.network
    summed, parts = counts_of_slices(network)
    cpus = max(int(ray.cluster_resources().get("CPU", 1)), 1)
    block, result = block_size(summed, parts, cpus), empty_result(network)
    shared, program = ray.put(operands_of(network, arrays)), ray.put(pickle.dumps(artifact))
    work = ray.remote(num_cpus=1, max_retries=retries)(block_sum)
    join = ray.remote(num_cpus=1, max_retries=retries)(joined)
    count = parts * -(-summed // block)
    tasks = _Tasks(WAITING_PER_CPU * cpus, count, progress)
    try:
        for part in range(parts):
            sums = PairwiseSum(partial(join.remote, network.semiring))
            for start in range(part * summed, (part + 1) * summed, block):
                stop = min(start + block, (part + 1) * summed)
                sums.add(tasks.run(work.remote(program, shared, start, stop, __version__)))
            tasks.keep(sums.total(), partial(write_part, network, result, part))
        tasks.finish()
    except BaseException as error:
        tasks.cancel()
        raise _explained(error) from error
    return result


@dataclass
class _Tasks:
    """Tasks in flight: at most ``most``, so that few results wait in the memory of the cluster."""

    most: int
    count: int
    progress: Callable[[int, int], None] | None
    done: int = 0
    running: list[Any] = field(default_factory=list)
    sums: list[tuple[Any, Callable[[np.ndarray], None]]] = field(default_factory=list)

    def run(self, task: Any) -> Any:
        """Note a task and return it; first wait for others if too many are in flight."""
        self.running.append(task)
        while len(self.running) > self.most:
            self._wait()
        return task

    def keep(self, total: Any, write: Callable[[np.ndarray], None]) -> None:
        """Note the sum of a part of the result; ``write`` gets it once its tasks are done."""
        self.sums.append((total, write))

    def finish(self) -> None:
        """Wait for all tasks, and write all sums."""
        import ray

        while self.running:
            self._wait()
        for total, write in self.sums:
            write(ray.get(total))

    def _wait(self) -> None:
        """Wait for a task, report it, and write the sums that are ready."""
        import ray

        (task,), self.running = ray.wait(self.running)
        ray.get(task)  # raises the error of the task
        self.done += 1
        if self.progress is not None:
            self.progress(self.done, self.count)
        waiting = []
        for total, write in self.sums:
            if ray.wait([total], timeout=0)[0]:
                write(ray.get(total))
            else:
                waiting.append((total, write))
        self.sums = waiting

    def cancel(self) -> None:
        """Cancel the tasks in flight, and the sums."""
        import ray

        for each in (*self.running, *(total for total, _ in self.sums)):
            ray.cancel(each)


def block_size(summed: int, parts: int, cpus: int) -> int:
    """Return the number of slices of a task: a power of 2, so that blocks fit the pairwise order.

    ``summed`` and ``parts`` are those of ``counts_of_slices``.
    """
    tasks = max(1, TASKS_PER_CPU * cpus // parts)
    return 1 << max(0, (-(-summed // tasks) - 1).bit_length())


def _explained(error: BaseException) -> BaseException:
    """Return the error of smelt behind ``error`` of Ray; E520 if a worker died too often."""
    import ray.exceptions

    if isinstance(error, ray.exceptions.RayTaskError):
        return error.cause if isinstance(error.cause, SmeltError) else error
    if isinstance(error, ray.exceptions.RayError):
        return ResourceLimit(
            "E520",
            "a Ray worker that computed slices died too often",
            why=str(error).strip().partition("\n")[0][:200],
            fix="give memory_limit= a smaller number, or allow more retries=",
        )
    return error
