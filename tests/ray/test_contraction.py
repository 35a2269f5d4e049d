"""Contractions in slices on a cluster of several processes of this machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

# tests/ray would pass for the package itself.
pytest.importorskip("ray._version", reason="needs ray: pip install 'smelt-compiler[ray]'")

import smelt
import smelt.ray
from smelt.errors import UsageError
from smelt.ray.contraction import block_size

EQUATION, SIZE = "abc,cde,efa->", 6


def operands() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((SIZE,) * len(term)) for term in EQUATION[:-2].split(",")]


@pytest.mark.parametrize("summed", [1, 2, 7, 100, 4096])
@pytest.mark.parametrize("parts", [1, 3, 1000])
def test_blocks_are_powers_of_two_and_not_too_many(summed: int, parts: int) -> None:
    size = block_size(summed, parts, cpus=2)
    assert size & (size - 1) == 0
    assert parts * -(-summed // size) <= max(16, parts)


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def workers() -> list[int]:
    """Processes of this cluster that compute slices."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                command = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if command.startswith(b"ray::_block_sum"):
                found.append(int(folder.name))
    return found


@pytest.mark.slow  # To start a cluster takes some 10 s.
def test_a_killed_worker_is_survived(cluster: None) -> None:
    arrays, limit = operands(), 20
    artifact = smelt.compile_einsum(
        EQUATION, arrays, np.float64, memory_limit=limit, engine="native"
    )
    killed: list[int] = []

    def kill() -> None:
        """Kill the first worker that computes slices; its task takes a second, as it compiles."""
        while not killed:
            for process in workers()[:1]:
                os.kill(process, signal.SIGKILL)
                killed.append(process)
            time.sleep(0.02)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    found = smelt.ray.contract(EQUATION, *arrays, memory_limit=limit)
    assert killed
    assert np.asarray(found).tobytes() == artifact.sum_slices(arrays).tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("equation", [EQUATION, "abc,cde,efg->ag"])
def test_bits_are_those_of_one_process(cluster: None, equation: str) -> None:
    arrays, limit = operands(), 20
    artifact = smelt.compile_einsum(
        equation, arrays, np.float64, memory_limit=limit, engine="native"
    )
    assert len(artifact.slices) > 4
    seen: list[tuple[int, int]] = []
    found = smelt.ray.contract(
        equation, *arrays, memory_limit=limit, progress=lambda done, of: seen.append((done, of))
    )
    assert np.asarray(found).tobytes() == artifact.sum_slices(arrays).tobytes()
    assert seen[-1][0] == seen[-1][1] == len(seen)


@pytest.mark.slow
def test_errors_are_those_of_einsum(cluster: None) -> None:
    with pytest.raises(UsageError, match="E656"):
        smelt.ray.contract("ab,bc->ac", np.ones((2, 3)), np.ones((2, 3)))
