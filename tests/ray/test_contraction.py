"""Contractions in slices on a cluster of several processes of this machine."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# tests/ray would pass for the package itself.
pytest.importorskip("ray._version", reason="needs ray: pip install 'smelt-compiler[ray]'")

import smelt
import smelt.ray
from smelt.errors import UsageError
from smelt.ray import contraction
from smelt.ray.contraction import block_size
from smelt.ray.estimate import estimate

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


def test_more_workers_take_less_time_until_starting_takes_all() -> None:
    artifact = smelt.compile_einsum(
        "abcd,cdef,efgh,ghab->", [(8, 8, 8, 8)] * 4, memory_limit=70, engine="numpy"
    )
    count = len(artifact.slices)
    assert count == 64
    found = [estimate(artifact, workers, 1.0) for workers in (1, 4, 16, 64)]
    times = [each.seconds for each in found]
    assert times == sorted(times, reverse=True)
    assert 0.9 < found[0].efficiency < 1
    assert all(count / each.workers <= each.seconds for each in found)
    assert [each.tasks for each in found] == [8, 32, 64, 64]
    short = estimate(artifact, 512, 1e-6)
    assert short.seconds > 3
    assert short.efficiency < 0.01
    with pytest.raises(UsageError, match="E699"):
        estimate(artifact, 0, 1.0)


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
            if command.startswith(b"ray::block_sum"):
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
def test_an_error_of_progress_cancels_and_few_tasks_are_in_flight(
    cluster: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []
    most: list[int] = []
    original = contraction._Tasks.run

    def run(self: Any, task: Any) -> Any:
        given.append(1)
        most.append(len(given) - self.done)
        return original(self, task)

    monkeypatch.setattr(contraction._Tasks, "run", run)
    seen: list[int] = []

    def stop(done: int, count: int) -> None:
        seen.append(done)
        if done == 4:
            raise InterruptedError("enough")

    with pytest.raises(InterruptedError, match="enough"):
        smelt.ray.contract("abc,cde,efg->ag", *operands(), memory_limit=20, progress=stop)
    assert seen == [1, 2, 3, 4]
    assert max(most) <= 2 * contraction.WAITING_PER_CPU + 1


@pytest.mark.slow
def test_errors_are_those_of_einsum(cluster: None) -> None:
    with pytest.raises(UsageError, match="E656"):
        smelt.ray.contract("ab,bc->ac", np.ones((2, 3)), np.ones((2, 3)))
