"""The tasks of a contraction in slices, which workers of a Ray cluster run."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from smelt import __version__
from smelt.errors import UsageError
from smelt.networks.network import Contraction
from smelt.networks.slices import PairwiseSum, sum_of_two
from smelt.operators.semiring import Semiring


def block_sum(
    program: bytes, operands: Sequence[np.ndarray], start: int, stop: int, version: str
) -> np.ndarray:
    """Return the sum of the slices from ``start`` to ``stop``, computed on a worker.

    ``program`` is the pickled artifact. Ray sends this function by name, so workers need smelt.
    """
    if __version__ != version:
        raise UsageError(
            "E695",
            f"a machine of the cluster has smelt {__version__}, this one {version}",
            fix=f"install smelt {version} on every machine",
            why="results of two versions may differ",
        )
    artifact = _unpickled(program)
    sums = PairwiseSum(partial(sum_of_two, artifact.network.semiring))
    for number in range(start, stop):
        sums.add(artifact.run_checked(operands, number))
    total: np.ndarray = sums.total()
    return total


@lru_cache(4)
def _unpickled(program: bytes) -> Contraction:
    """Return the artifact, which compiles a slice once in each process."""
    artifact: Contraction = pickle.loads(program)
    return artifact


def joined(semiring: Semiring, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the sum of two blocks."""
    return sum_of_two(semiring, first, second)
