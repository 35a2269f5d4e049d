"""The time of a contraction on clusters of any size, computed from the time of one slice."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2, prod
from typing import TYPE_CHECKING

from smelt.networks.arguments import count_of
from smelt.ray.contraction import block_size

if TYPE_CHECKING:
    from smelt.networks.network import Contraction


@dataclass(frozen=True)
class Cluster:
    """What a cluster costs besides slices, in seconds and bytes per second.

    ``start`` is the time until a worker has imported smelt and compiled the slice, ``task`` that of
    a task beside its slices, ``dispatch`` that which the caller needs to give out a task, and
    ``bandwidth`` that of the network of a machine, each of which has ``workers_per_machine``.
    """

    start: float = 3.0
    task: float = 1e-3
    dispatch: float = 3e-4
    bandwidth: float = 1.25e9
    workers_per_machine: int = 64


@dataclass(frozen=True)
class Estimate:
    """The time of a contraction, and where it goes.

    ``efficiency`` is the time of all slices on one worker over that of ``workers`` such times.
    """

    workers: int
    tasks: int
    seconds: float
    send_seconds: float
    slice_seconds: float
    sum_seconds: float
    efficiency: float


def estimate(
    artifact: Contraction,
    workers: int,
    seconds_of_slice: float,
    cluster: Cluster = Cluster(),
) -> Estimate:
    """Return how long ``smelt.ray.contract`` takes with ``workers``, by arithmetic alone.

    ``seconds_of_slice`` is measured: that of ``artifact.run_slice``. Operands are sent to machines
    from one to the next, so their time grows with log2 of the machines. Then tasks run in rounds;
    the last sums are joined in pairs, each after a result was sent. Raises UsageError E699 for a
    number of workers below 1.
    """
    from smelt.networks.slices import counts_of_slices

    workers = count_of("workers", workers, 1)
    network = artifact.network
    summed, parts = counts_of_slices(network)
    sizes = {label: int(str(size)) for label, size in network.sizes.items()}
    terms = network.equation.terms
    bytes_in = network.dtype.itemsize * sum(prod(sizes[i] for i in term) for term in terms)
    kept = [i for i in network.equation.out if i not in network.sliced]
    bytes_out = network.dtype.itemsize * prod(sizes[i] for i in kept)
    block = block_size(summed, parts, workers)
    per_part = ceil(summed / block)
    tasks = parts * per_part
    machines = ceil(workers / cluster.workers_per_machine)
    send = bytes_in / cluster.bandwidth * ceil(log2(machines + 1))
    task = min(block, summed) * seconds_of_slice + cluster.task
    in_rounds = cluster.start + ceil(tasks / workers) * task
    given_out = cluster.start + tasks * cluster.dispatch + task
    computing = max(in_rounds, given_out)
    joins = ceil(log2(per_part)) if per_part > 1 else 0
    adding = joins * (cluster.task + 2 * bytes_out / cluster.bandwidth)
    adding += parts * bytes_out / cluster.bandwidth
    total = send + computing + adding
    efficiency = summed * parts * seconds_of_slice / (workers * total)
    return Estimate(workers, tasks, total, send, computing, adding, efficiency)
