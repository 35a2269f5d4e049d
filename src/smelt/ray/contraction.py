"""Contract a tensor network on the machines of a Ray cluster, slice by slice.

The operands are put into the cluster once. A task adds up a block of slices, and reducers add up
blocks in pairs, in the order of ``smelt.networks.slices``: the bits are those of ``sum_slices`` in
one process on the same kind of CPU.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from smelt import __version__
from smelt.errors import ResourceLimit, SmeltError, UsageError
from smelt.networks.arguments import check_function, count_of
from smelt.ray.cluster import LOCAL, connected

if TYPE_CHECKING:
    from smelt.networks.network import Contraction
    from smelt.operators.semiring import Semiring

TASKS_PER_CPU = 8
"""The most tasks of one part of the result, for each CPU of the cluster."""

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
    ``options`` are those of ``smelt.einsum`` but ``out``. An interrupt cancels all tasks.

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

    from smelt.networks.slices import counts_of_slices, empty_result, operands_of, write_part

    network = artifact.network
    checked = operands_of(network, arrays)
    summed, parts = counts_of_slices(network)
    shared, program = ray.put(checked), ray.put(pickle.dumps(artifact))
    work = ray.remote(num_cpus=1, max_retries=retries)(_block_sum)
    join = ray.remote(num_cpus=1, max_retries=retries)(_joined)
    blocks: list[Any] = []

    def total(start: int, stop: int) -> Any:
        """Return a reference to the sum of the slices from ``start`` to ``stop``.

        It is one task if it has at most ``block`` slices, else the sum of two such sums.
        """
        if stop - start <= block:
            blocks.append(work.remote(program, shared, start, stop, __version__))
            return blocks[-1]
        middle = start + (1 << (stop - start - 1).bit_length() - 1)
        first, second = total(start, middle), total(middle, stop)
        return join.remote(network.semiring, first, second)

    block = block_size(summed, parts, max(int(ray.cluster_resources().get("CPU", 1)), 1))
    result = empty_result(network)
    sums = [total(part * summed, (part + 1) * summed) for part in range(parts)]
    try:
        waiting = list(blocks)
        while waiting:
            done, waiting = ray.wait(waiting)
            ray.get(done)  # raises the error of a task at once
            if progress is not None:
                progress(len(blocks) - len(waiting), len(blocks))
        for part, reference in enumerate(sums):
            write_part(network, result, part, ray.get(reference))
    except BaseException as error:
        for reference in (*blocks, *sums):
            ray.cancel(reference)
        raise _explained(error) from error
    return result


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


def _block_sum(
    program: bytes, operands: Sequence[np.ndarray], start: int, stop: int, version: str
) -> np.ndarray:
    """Return the sum of the slices from ``start`` to ``stop``, computed on a worker.

    ``program`` is the pickled artifact. Ray sends this function by name, so workers need smelt.
    """
    from smelt.networks.slices import PairwiseSum

    if __version__ != version:
        raise UsageError(
            "E695",
            f"a machine of the cluster has smelt {__version__}, this one {version}",
            fix=f"install smelt {version} on every machine",
            why="results of two versions may differ",
        )
    artifact = _unpickled(program)
    sums = PairwiseSum(artifact.network.semiring)
    for number in range(start, stop):
        sums.add(artifact.run_checked(operands, number))
    return sums.total()


@lru_cache(4)
def _unpickled(program: bytes) -> Contraction:
    """Return the artifact, which compiles a slice once in each process."""
    artifact: Contraction = pickle.loads(program)
    return artifact


def _joined(semiring: Semiring, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the sum of two blocks."""
    from smelt.networks.slices import sum_of_two

    return sum_of_two(semiring, first, second)
