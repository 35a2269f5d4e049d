"""Threads for slices: which way is chosen, and that no way changes a bit."""

from __future__ import annotations

from collections.abc import Callable
from time import sleep

import numpy as np
import pytest

import smelt
from smelt.networks import thread_use
from smelt.networks.thread_use import ThreadUse

NUMBERS = range(3, 43)


def slow(seconds: float, sign: int = 1) -> Callable[[int], np.ndarray]:
    def run(number: int) -> np.ndarray:
        sleep(seconds)
        return np.asarray(float(sign * number))

    return run


@pytest.fixture
def always_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thread_use, "MEASURED_FROM", 0)


@pytest.mark.usefixtures("always_measured")
@pytest.mark.parametrize(
    ("alone", "within", "sign", "way"),
    [
        (0.002, 0.0001, 1, "products"),
        (0.002, 0.004, 1, "slices"),
        (0.002, 0.0001, -1, "slices"),
    ],
    ids=["products are faster", "slices are faster", "products have other bits"],
)
def test_the_faster_way_is_measured_and_kept(
    alone: float, within: float, sign: int, way: str
) -> None:
    use, compiled = ThreadUse(2), []

    def program() -> Callable[[int], np.ndarray]:
        compiled.append(1)
        return slow(within, sign)

    for _ in range(2):
        assert list(map(int, use.results(slow(alone), program, NUMBERS))) == list(NUMBERS)
        assert use.report["way"] == way
    assert set(use.report) == {"way", "seconds by slices", "seconds by products"}
    assert len(compiled) == (1 if way == "slices" else 3)


def never() -> Callable[[int], np.ndarray]:
    raise AssertionError("no second program is compiled")


def test_slices_that_take_little_time_are_not_measured() -> None:
    use = ThreadUse(2)
    assert list(map(int, use.results(slow(0.001), never, NUMBERS))) == list(NUMBERS)
    assert use.report == {"way": "slices"}


def test_brief_slices_run_on_one_thread() -> None:
    use = ThreadUse(2)
    assert list(map(int, use.results(np.asarray, never, NUMBERS))) == list(NUMBERS)
    assert use.report == {"way": "one thread"}


@pytest.mark.usefixtures("always_measured")
@pytest.mark.parametrize("count", [0, 1])
def test_a_single_slice_has_nothing_to_choose(count: int) -> None:
    use = ThreadUse(2)
    assert list(use.results(slow(0), never, NUMBERS[:count])) == [3.0][:count]
    assert use.report == {}


@pytest.mark.usefixtures("always_measured")
def test_without_a_second_program_threads_go_over_slices() -> None:
    use = ThreadUse(2)
    assert list(map(int, use.results(slow(0.001), None, NUMBERS))) == list(NUMBERS)
    assert use.report == {"way": "slices"}


@pytest.mark.slow
@pytest.mark.usefixtures("always_measured")
def test_both_ways_have_the_bits_of_one_thread() -> None:
    shapes = [(24, 8, 40)] * 3
    arrays = [np.random.default_rng(i).standard_normal(shapes[i]) for i in range(3)]
    artifact = smelt.compile_einsum(
        "abc,adc,aec->bde", shapes, "f8", memory_limit=500, engine="native"
    )
    alone = artifact.sum_slices(arrays)
    for way in ("slices", "products"):
        found = artifact.sum_slices(arrays, threads=2)
        np.testing.assert_array_equal(found, alone)
        artifact._thread_uses[2].report["way"] = way
    np.testing.assert_array_equal(artifact.sum_slices(arrays, threads=2), alone)
